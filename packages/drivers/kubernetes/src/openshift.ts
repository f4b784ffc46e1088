/** Drivers `openshift` and `openshiftpods`. */
export { openshiftDriver, openshiftpodsDriver } from "./edge/host.ts";
