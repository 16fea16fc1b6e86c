// The host's function, inside the component. Only a project with `"vmhost": {"http": true}` in its
// package.json has it.

import * as http from "vmhost:http/http@1.0.0";

export const send = (request) => http.send(request);
