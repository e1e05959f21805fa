package migrations

// What the tests need of the inside: Apply with files of their own, the real files, and River's newest step.
var (
	ApplyFrom    = apply
	Files        = files
	RiverVersion = riverVersion
)

func RiverNewest() (newest int, err error) {
	m, err := riverSteps(nil)
	if err != nil {
		return 0, err
	}
	for _, v := range m.AllVersions() {
		newest = max(newest, v.Version)
	}
	return newest, nil
}
