import { createKubernetesDrivers } from "../driver.ts";
import { thisHost } from "./host.ts";

/** The drivers `kubernetes`, `openshift` and `openshiftpods`. Those with the same cluster share its connection. */
export const [kubernetesDriver, openshiftDriver, openshiftpodsDriver] = createKubernetesDrivers(thisHost);
