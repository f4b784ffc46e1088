import { POLICIES } from "../core/policy.ts";
import { R0 } from "./r0.ts";
import type { WireProfile } from "./table.ts";

/** The tip of the 2.0 line (docs/contract/slivers.md, "Loans"). Its share of 1 is the seed's of 32. */
export const V2: WireProfile = {
  name: "v2",
  policy: POLICIES.v2,
  resources: [
    { wire: "enabled", resource: "enabled", scale: 1 },
    { wire: "cpu_pct", resource: "cpuGuarantee", scale: 10 },
    { wire: "cpu_share", resource: "cpuShare", scale: 32 },
    { wire: "net_min_rate", resource: "netGuarantee", scale: 1000 },
    { wire: "net_max_rate", resource: "netCap", scale: 1000 },
    { wire: "net_share", resource: "netShare", scale: 1 },
    { wire: "net_i2_min_rate", resource: "net2Guarantee", scale: 1000 },
    { wire: "net_i2_max_rate", resource: "net2Cap", scale: 1000 },
    { wire: "net_i2_share", resource: "net2Share", scale: 1 },
    { wire: "net_max_kbyte", resource: "netDay", scale: 1 },
    { wire: "net_thresh_kbyte", resource: "netDayThreshold", scale: 1 },
    { wire: "net_i2_max_kbyte", resource: "net2Day", scale: 1 },
    { wire: "net_i2_thresh_kbyte", resource: "net2DayThreshold", scale: 1 },
    { wire: "disk_max", resource: "disk", scale: 1 },
  ],
  methods: [...R0.methods, "AdminTicket", "GetRecord", "GetSSHKeys", "GetXIDs", "ReCreate", "Ticket"].sort(),
};
