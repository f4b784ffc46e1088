import { R0 } from "./r0.ts";
import { V2 } from "./v2.ts";

export { MAX_WIRE_INT, toWire, type WireProfile, type WireResource } from "./table.ts";

export const PROFILES = { r0: R0, v2: V2 } as const;
export type ProfileName = keyof typeof PROFILES;
