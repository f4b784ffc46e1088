export { apply, type Enrolled, plan } from "./edge/enrol.ts";
export { withdraw } from "./edge/withdraw.ts";
export { EnrolError } from "./errors.ts";
export { CONTROL_USER, LAYOUT } from "./layout.ts";
export { parseSettings } from "./settings.ts";
