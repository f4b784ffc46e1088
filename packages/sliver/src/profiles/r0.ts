import { POLICIES } from "../core/policy.ts";
import type { WireProfile } from "./table.ts";

/** The seed's revision (docs/contract/slivers.md, "Loans"). */
export const R0: WireProfile = {
  name: "r0",
  policy: POLICIES.r0,
  resources: [
    { wire: "enabled", resource: "enabled", scale: 1 },
    { wire: "cpu_min", resource: "cpuGuarantee", scale: 1 },
    { wire: "cpu_share", resource: "cpuShare", scale: 1 },
    { wire: "net_min", resource: "netGuarantee", scale: 1 },
    { wire: "net_max", resource: "netCap", scale: 1 },
    { wire: "net2_min", resource: "net2Guarantee", scale: 1 },
    { wire: "net2_max", resource: "net2Cap", scale: 1 },
    { wire: "net_share", resource: "netShare", scale: 1 },
    { wire: "disk_max", resource: "disk", scale: 1 },
  ],
  methods: [
    "Create",
    "Destroy",
    "GetEffectiveRSpec",
    "GetLoans",
    "GetRSpec",
    "Help",
    "SetLoans",
    "Start",
    "Stop",
  ],
};
