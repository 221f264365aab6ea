"""Makes one of each thing on a fresh installation and prints a schemathesis configuration that knows their ids.

Arguments: the API's address. The access token comes in PLUMBLINE_FUZZ_TOKEN.
"""

import base64
import json
import os
import sys
import time
import urllib.request

URL = sys.argv[1]
TOKEN = os.environ["PLUMBLINE_FUZZ_TOKEN"]
DEADLINE_SECONDS = 60


def call(method, path, body=None, basic=False):
    """Answers the JSON document of a call that must succeed."""
    secret = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    headers = {
        "Authorization": f"Basic {secret}" if basic else f"Bearer {TOKEN}",
        "Content-Type": "application/json",
    }
    if not basic:
        headers["X-Business-Unit"] = "default"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def wait_for(what, ask):
    """Asks again until there is an answer."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        found = ask()
        if found:
            return found
        time.sleep(0.2)
    sys.exit(f"error: {what} did not happen within {DEADLINE_SECONDS} s")


def workspace(name):
    # Nothing listens there: runs and listings fail at once and leave their records.
    return call("POST", "/api/v1/workspaces", {
        "name": name, "environment": "dev", "repo_url": f"http://127.0.0.1:9/{name}.git",
        "state_writes": "runs_and_people",
    })["id"]


def state(serial):
    return {"version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "one", "outputs": {},
            "resources": []}


busy, quiet = workspace("busy"), workspace("quiet")
path = f"/api/v1/state/{quiet}"
for serial in (1, 2):
    call("POST", path, state(serial), basic=True)
version = call("GET", f"/api/v1/workspaces/{quiet}/state-versions")["items"][1]["id"]
# A write with a lock that nobody holds goes to quarantine, and is answered with a refusal.
try:
    call("POST", f"{path}?ID=00000000-0000-0000-0000-000000000000", state(3), basic=True)
except urllib.error.HTTPError as refused:
    if refused.code not in (409, 423):
        raise
waiting = f"/api/v1/workspaces/{quiet}/quarantined-states"
quarantined = wait_for("a quarantined state", lambda: call("GET", waiting)["items"])[0]["id"]
run = call("POST", "/api/v1/runs", {"workspace_id": busy, "command": "apply"})["id"]
task = call("POST", f"/api/v1/workspaces/{busy}/branches")["task_id"]
forge = {"name": "forge", "kind": "token", "host": "git.example.com", "token": "for fuzzing only"}
credential = call("POST", "/api/v1/git-credentials", forge)["id"]
unit = call("GET", "/api/v1/business-units")["items"][0]["id"]

known = {
    "^/api/v1/workspaces/": ("id", quiet),
    "^/api/v1/runs/": ("id", run),
    "^/api/v1/approvals/": ("run_id", run),
    "^/api/v1/tasks/": ("id", task),
    "^/api/v1/state-versions/": ("id", version),
    "^/api/v1/quarantined-states/": ("id", quarantined),
    "^/api/v1/business-units/": ("id", unit),
    "^/api/v1/git-credentials/": ("id", credential),
}
for pattern, (name, value) in known.items():
    print(f"""
[[operations]]
include-path-regex = {json.dumps(pattern)}
parameters = {{ "path.{name}" = {json.dumps(value)} }}""")
