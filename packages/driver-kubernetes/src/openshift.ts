/** The other drivers of the package: `openshift` and `openshiftpods`. */
export { openshiftDriver, openshiftpodsDriver } from "./edge/default.ts";
