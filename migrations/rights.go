package migrations

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// RightsError is returned when the role may not do what the first migration needs. Nothing was tried then.
type RightsError struct {
	Role       string   // the role that migrates
	Statements []string // what a superuser runs once to help it
}

func (e *RightsError) Error() string {
	return fmt.Sprintf("role %s lacks rights for the first migration; a superuser runs:\n  %s\n(or the whole of it once: highwater migrate --print | psql)",
		pgx.Identifier{e.Role}.Sanitize(), strings.Join(e.Statements, "\n  "))
}

// askRights tells what is there already and what the role may do. From PostgreSQL 16 on being a member is not enough: a role
// that CREATEROLE made gives its maker the ADMIN option and no more, with which the maker may grant itself the rest.
const askRights = `
	SELECT u.rolname, current_database(),
		ARRAY(SELECT w.name FROM unnest($1::text[]) WITH ORDINALITY AS w (name, place)
		      WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS x WHERE x.rolname = w.name) ORDER BY w.place),
		(SELECT count(*) = 2 FROM pg_catalog.pg_namespace AS n WHERE n.nspname IN ('connector', 'connector_queue')),
		has_database_privilege(current_database(), 'CREATE'),
		u.rolcreaterole OR u.rolsuper,
		COALESCE(pg_has_role(o.oid, CASE WHEN v.modern THEN 'SET' ELSE 'MEMBER' END), false),
		CASE WHEN u.rolsuper THEN true
		     WHEN v.modern AND o.oid IS NOT NULL THEN pg_has_role(o.oid, 'MEMBER WITH ADMIN OPTION')
		     ELSE u.rolcreaterole END
	FROM pg_catalog.pg_roles AS u
	CROSS JOIN (SELECT current_setting('server_version_num')::integer >= 160000) AS v (modern)
	LEFT JOIN pg_catalog.pg_roles AS o ON o.rolname = 'highwater_owner'
	WHERE u.rolname = current_user`

// rights names, before anything is tried, what the role would need and lacks.
func (r *runner) rights(ctx context.Context) error {
	wanted := []string{owner, "highwater_operator", "highwater_reader"}
	var role, database string
	var missing []string
	var schemas, create, createRole, acts, mayGrant bool
	err := r.conn.QueryRow(ctx, askRights, wanted).
		Scan(&role, &database, &missing, &schemas, &create, &createRole, &acts, &mayGrant)
	if err != nil {
		return fmt.Errorf("looking at the rights of the role: %w", err)
	}
	var lack []string
	as := pgx.Identifier{role}.Sanitize()
	if !createRole {
		for _, name := range missing {
			lack = append(lack, "CREATE ROLE "+name+" NOLOGIN;")
		}
	}
	if !acts && !mayGrant {
		lack = append(lack, "GRANT "+owner+" TO "+as+";")
	}
	if !schemas && !create {
		lack = append(lack, "GRANT CREATE ON DATABASE "+pgx.Identifier{database}.Sanitize()+" TO "+as+";")
	}
	if len(lack) > 0 {
		return &RightsError{Role: role, Statements: lack}
	}
	return nil
}
