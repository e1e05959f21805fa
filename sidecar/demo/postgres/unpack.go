package postgres

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ulikunitz/xz"
)

// unpackedBytesMax bounds what an archive may unfold to; PostgreSQL takes about 60 MB.
const unpackedBytesMax = 1 << 30

// unpack writes the tree of the jar's one .txz into dir.
func unpack(jar, dir string) error {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return fmt.Errorf("opening the PostgreSQL archive: %w", err)
	}
	defer archive.Close()
	for _, entry := range archive.File {
		if !strings.HasSuffix(entry.Name, ".txz") {
			continue
		}
		content, err := entry.Open()
		if err != nil {
			return fmt.Errorf("opening %s: %w", entry.Name, err)
		}
		defer content.Close()
		stream, err := xz.NewReader(bufio.NewReader(content))
		if err != nil {
			return fmt.Errorf("reading %s: %w", entry.Name, err)
		}
		return untar(tar.NewReader(io.LimitReader(stream, unpackedBytesMax)), dir)
	}
	return errors.New("the PostgreSQL archive holds no .txz file")
}

func untar(from *tar.Reader, dir string) error {
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking PostgreSQL: %w", err)
		}
		if err := place(from, header, dir); err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

// place writes one entry. Names and link targets that lead out of the folder are refused, whatever the archive says.
func place(from io.Reader, header *tar.Header, dir string) error {
	name := filepath.FromSlash(strings.TrimPrefix(header.Name, "./"))
	if name == "" {
		return nil
	}
	if !filepath.IsLocal(name) {
		return errors.New("the name leads out of the folder")
	}
	target := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(target, 0o755)
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), header.Linkname)) {
			return errors.New("the link leads out of the folder")
		}
		return os.Symlink(header.Linkname, target)
	case tar.TypeReg:
		return write(from, target, header.FileInfo().Mode().Perm()|0o444)
	default:
		return nil
	}
}

func write(from io.Reader, target string, mode os.FileMode) (err error) {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, from)
	return err
}
