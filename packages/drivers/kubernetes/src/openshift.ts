/** Drivers `openshift` and `openshiftpods`. */
export { openshiftDriver, openshiftpodsDriver } from "./edge/default.ts";
