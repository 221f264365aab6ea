"use strict";
(async () => {
  const said = document.getElementById("said");
  const reasons = {
    "oidc-off": "Nobody signs in through an identity provider here.",
    "oidc-misconfigured": "The identity provider is not set up completely. Tell whoever administers Plumbline.",
    "oidc-provider-away": "The identity provider does not answer at the moment. Try again in a moment.",
    "oidc-start-again": "This sign-in took too long or was used already. Start again.",
    "oidc-refused": "The identity provider's answer was not accepted. The audit log says why.",
    "oidc-denied": "The identity provider did not let you in.",
    "oidc-email-unverified": "The identity provider does not say that your e-mail address is verified.",
    "oidc-account-linked": "The account with your e-mail address belongs to another identity.",
    "oidc-account-disabled": "Your account is disabled.",
    "too-many-attempts": "Too many attempts. Try again in a minute.",
  };
  const given = new URLSearchParams(location.hash.slice(1));
  // Neither the history nor anybody looking at the screen keeps it.
  history.replaceState(null, "", location.pathname);
  const call = (method, path, token, body) => fetch("/api/v1" + path, {
    method,
    credentials: "omit",
    headers: Object.assign(
      body ? { "content-type": "application/json" } : {},
      token ? { authorization: "Bearer " + token } : {},
    ),
    body: body ? JSON.stringify(body) : undefined,
  });
  try {
    const code = given.get("code");
    if (!code) {
      said.textContent = reasons[given.get("error")] || "You were not signed in. Start again.";
      return;
    }
    const traded = await call("POST", "/auth/oidc/token", null, { code });
    if (!traded.ok) {
      said.textContent = "The sign-in code is not valid any more. Start again.";
      return;
    }
    const token = (await traded.json()).access_token;
    const me = await (await call("GET", "/me", token)).json();
    await call("POST", "/auth/logout", token);
    said.textContent = "Signing in works" + (me.email ? ", as " + me.email : "") +
      ". There is no web console yet: work with the command line, and sign in there with: plumb login";
  } catch {
    said.textContent = "Plumbline does not answer at the moment. Try again in a moment.";
  }
})();
