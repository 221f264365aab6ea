//! Each function's role can do its function's work and nothing else.

use plumbline_core::Deps;
use plumbline_core::access::{Actor, Ctx, Role, Scope};
use plumbline_core::audit;
use plumbline_core::db::Query as _;
use plumbline_core::secrets::Domain;
use plumbline_core::sessions;
use plumbline_runtime::Function;

use crate::plane::roles::{grant, pool_as};
use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane};

/// A plane with grants, and its wiring as each role.
async fn granted() -> TestPlane {
    let plane = TestPlane::start().await;
    grant(plane.db()).await;
    plane
}

fn as_role(plane: &TestPlane, role: &str) -> Deps {
    Deps { db: pool_as(&plane.database_url, role, 1), ..plane.deps.clone() }
}

async fn refused(deps: &Deps, sql: &str) -> bool {
    let conn = deps.db.conn().await.expect("signed in");
    let error = conn.batch(sql).await.expect_err(sql);
    let causes = format!("{error:?}");
    causes.contains("permission denied") || causes.contains("must be owner")
}

#[tokio::test]
async fn the_private_keys_of_the_issuer_are_read_by_callback_and_by_whoever_seals_them_again_alone() {
    let plane = granted().await;
    for function in Function::ALL {
        let deps = as_role(&plane, function.role());
        if function != Function::Callback {
            if function != Function::Reconciler {
                assert!(refused(&deps, "SELECT private_sealed FROM issuer_keys").await, "{function:?}");
            }
            assert!(
                refused(&deps, "INSERT INTO issuer_keys SELECT * FROM issuer_keys").await,
                "{function:?}"
            );
            assert!(refused(&deps, "UPDATE issuer_keys SET modulus = 'mine'").await, "{function:?}");
        }
    }
}

#[tokio::test]
async fn every_role_signs_in_and_is_refused_what_is_not_its_own() {
    let plane = granted().await;
    for (role, forbidden) in [
        ("plumbline_api", ["INSERT INTO log_chunks SELECT * FROM log_chunks", "DELETE FROM sessions"]),
        ("plumbline_tfstate", ["SELECT password_hash FROM users", "UPDATE runs SET status = 'applied'"]),
        ("plumbline_callback", ["SELECT email FROM users", "UPDATE memberships SET role = 'admin'"]),
        ("plumbline_worker", ["SELECT * FROM sessions", "DELETE FROM workspaces"]),
        ("plumbline_outbound", ["UPDATE runs SET approved_at = plumbline_now()", "SELECT * FROM executors"]),
        (
            "plumbline_reconciler",
            ["SELECT password_hash FROM users", "UPDATE sessions SET revoked_at = NULL"],
        ),
        ("plumbline_migrate", ["SELECT * FROM users", "DELETE FROM runs"]),
    ] {
        let deps = as_role(&plane, role);
        for sql in forbidden {
            assert!(refused(&deps, sql).await, "{role}: {sql}");
        }
        for sql in [
            "UPDATE audit_heads SET sequence = 0",
            "DELETE FROM audit_entries",
            "INSERT INTO audit_entries SELECT * FROM audit_entries",
            "ALTER TABLE audit_entries DISABLE TRIGGER ALL",
            "CREATE TABLE mine (n integer)",
            "CREATE OR REPLACE FUNCTION plumbline_now() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
        ] {
            assert!(refused(&deps, sql).await, "{role}: {sql}");
        }
    }
}

#[tokio::test]
async fn the_roles_of_the_functions_are_enough_for_sign_in_and_audit() {
    let plane = granted().await;
    plane.admin_token().await;
    let api = as_role(&plane, "plumbline_api");
    let origin = sessions::Origin::new(Some("192.0.2.1"), Some("a test"));
    let pair = sessions::service::login(&api, ADMIN_EMAIL, PASSWORD, &origin).await.expect("signed in");
    let pair = sessions::service::refresh(&api, &pair.refresh_token).await.expect("refreshed");
    let ctx = sessions::service::authenticate(&api, &pair.access_token, None).await.expect("known");
    assert!(audit::service::verify(&api, &ctx).await.expect("verified").ok);

    let tfstate = as_role(&plane, "plumbline_tfstate");
    sessions::service::authenticate(&tfstate, &pair.access_token, None).await.expect("known there too");

    let reconciler = as_role(&plane, "plumbline_reconciler");
    assert!(audit::service::checkpoint(&reconciler).await.expect("sealed"));
    sessions::service::forget(&reconciler).await.expect("swept");
    plumbline_core::presence::service::forget(&reconciler).await.expect("swept");
    plumbline_core::idempotency::service::forget(&reconciler).await.expect("swept");

    for role in Function::ALL.map(Function::role) {
        assert!(plumbline_migrate::ROLES.contains(&role), "{role}");
        let deps = as_role(&plane, role);
        let entry = audit::Entry {
            business_unit_id: None,
            actor: Actor::System,
            action: audit::Action::TaskReplay,
            resource_type: "task",
            resource_id: role.into(),
            workspace_id: None,
            run_id: None,
            details: serde_json::json!({}),
        };
        let write = deps.db.transaction(async |tx| audit::service::record(tx, &entry).await);
        write.await.unwrap_or_else(|error| panic!("{role}: {error:?}"));
    }
    let ctx = Ctx { scope: Scope::All, role: Role::Admin, ..ctx };
    assert!(audit::service::verify(&plane.deps, &ctx).await.expect("verified").ok);
}

#[tokio::test]
async fn migrating_again_changes_nothing_also_in_several_databases_at_once() {
    let planes = futures::future::join_all((0..3).map(|_| TestPlane::start())).await;
    for _ in 0..2 {
        let reports =
            futures::future::join_all(planes.iter().map(|plane| plumbline_migrate::handle(plane.db())));
        for report in reports.await {
            assert_eq!(report.expect("migrated").migrations_applied, 0);
        }
    }
}

#[tokio::test]
async fn each_function_of_every_test_signs_in_as_itself_with_its_own_keys_alone() {
    let plane = TestPlane::start().await;
    for function in Function::ALL {
        let deps = plane.as_function(function);
        let conn = deps.db.conn().await.expect("signed in");
        let row = conn.query_one("SELECT current_user::text", &[]).await.expect("asked");
        assert_eq!(row.get::<_, &str>(0), function.role());
        for domain in Domain::ALL {
            let is_its_own = function.key_domains().contains(&domain);
            assert_eq!(deps.keys.key(domain).is_ok(), is_its_own, "{function:?} {domain:?}");
        }
    }
}

/// Every right that somebody else than the owner has: on tables, on columns, on functions.
const RIGHTS: &str = "
    WITH rights AS (
        SELECT c.relname::text AS object, (aclexplode(c.relacl)).* FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S', 'v')
        UNION ALL
        SELECT c.relname || '.' || a.attname, (aclexplode(a.attacl)).* FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'public'::regnamespace
        UNION ALL
        -- Without a list of its own a function is everybody's.
        SELECT p.proname || '()', (aclexplode(coalesce(p.proacl, acldefault('f', p.proowner)))).* FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace
        UNION ALL
        SELECT 'schema public', (aclexplode(n.nspacl)).* FROM pg_namespace n WHERE n.nspname = 'public'
    )
    SELECT line FROM (
        SELECT CASE WHEN grantee = 0 THEN 'everybody' ELSE grantee::regrole::text END || ' ' || object || ' ' ||
               lower(string_agg(privilege_type || CASE WHEN is_grantable THEN '*' ELSE '' END, ','
                                ORDER BY privilege_type)) AS line
        FROM rights
        WHERE grantee = 0 OR grantee::regrole::text LIKE 'plumbline\\_%'
        GROUP BY grantee, object
    ) AS lines
    ORDER BY line COLLATE \"C\"";

#[tokio::test]
async fn the_functions_have_the_rights_in_the_list_and_no_others() {
    let plane = granted().await;
    let conn = plane.db().conn().await.expect("a connection");
    let rows = conn.query(RIGHTS, &[]).await.expect("the rights");
    let actual: String = rows.iter().map(|row| row.get::<_, String>("line") + "\n").collect();
    let kept = include_str!("grants.txt");
    let (new, gone) = (lines_without(&actual, kept), lines_without(kept, &actual));
    assert!(
        actual == kept,
        "tests/it/store/grants.txt does not say what functions/migrate/src/grants.sql grants.\nnew: {new:#?}\ngone: {gone:#?}"
    );
}

fn lines_without<'a>(text: &'a str, other: &str) -> Vec<&'a str> {
    text.lines().filter(|line| !other.lines().any(|known| known == *line)).collect()
}

#[tokio::test]
async fn every_role_gives_up_waiting_after_the_time_that_its_function_has() {
    let plane = granted().await;
    for (role, statement) in [
        ("plumbline_api", "10s"),
        ("plumbline_tfstate", "10s"),
        ("plumbline_signin", "10s"),
        ("plumbline_callback", "10s"),
        ("plumbline_worker", "30s"),
        ("plumbline_outbound", "30s"),
        ("plumbline_reconciler", "55s"),
        ("plumbline_migrate", "0"),
    ] {
        let conn = as_role(&plane, role).db.conn().await.expect("signed in");
        for (setting, expected) in [
            ("statement_timeout", statement),
            ("lock_timeout", "3s"),
            ("idle_in_transaction_session_timeout", "15s"),
        ] {
            let row = conn.query_one("SELECT current_setting($1)", &[&setting]).await.expect("asked");
            assert_eq!(row.get::<_, &str>(0), expected, "{role}: {setting}");
        }
    }
    assert_eq!(plumbline_migrate::ROLES.len(), 8, "the table has them all");
}
