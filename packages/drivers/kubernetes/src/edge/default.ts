import { createKubernetesDrivers } from "../driver.ts";
import { thisHost } from "./host.ts";

/** The drivers `kubernetes`, `openshift` and `openshiftpods`. They share the connection to a cluster. */
export const [kubernetesDriver, openshiftDriver, openshiftpodsDriver] = createKubernetesDrivers(thisHost);
