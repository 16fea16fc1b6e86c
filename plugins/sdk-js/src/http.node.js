// HTTP requests in native tests: the host that `testing.js` set for the call answers.

import { current } from "./host.node.js";

export function send(request) {
  const host = current.getStore();
  if (host !== undefined) return host.send(request);
  throw { payload: { tag: "not-sent", val: "there is no host in a native test; call the policy through TestHost of @vmhost/plugin/testing" } };
}
