/** What the account and the region of a double have. */
export const REGION = "us-south";
export const ACCOUNT = "aa2432b1fa4d4ace891e9b80fc104e34";
export const ZONES = ["us-south-1", "us-south-2", "us-south-3"];
/** vCPUs and GiB. */
export const PROFILES: Readonly<Record<string, readonly [number, number]>> = {
  "cx2-2x4": [2, 4],
  "bx2-2x8": [2, 8],
  "bx2-4x16": [4, 16],
};
export const IMAGES = [
  ["ibm-debian-12-6-minimal-amd64-1", "debian-12-amd64", "2025-05-01T00:00:00Z"],
  ["ibm-debian-13-0-minimal-amd64-1", "debian-13-amd64", "2025-09-01T00:00:00Z"],
  ["ibm-debian-13-1-minimal-amd64-1", "debian-13-amd64", "2026-02-01T00:00:00Z"],
] as const;
export const KEYS = ["testuser", "nodes"];
/** Networks by name, with the zones of their subnets. */
export const SUBNETS: Readonly<Record<string, { readonly vpc: string; readonly zone: string }>> = {
  "sn-nodepool": { vpc: "nodepool", zone: "us-south-1" },
  "sn-nodepool-2": { vpc: "nodepool", zone: "us-south-2" },
  "sn-nodepool-3": { vpc: "nodepool", zone: "us-south-3" },
  "nodes-1": { vpc: "nodes", zone: "us-south-1" },
  "nodes-2": { vpc: "nodes", zone: "us-south-2" },
  "sn-other": { vpc: "other", zone: "us-south-1" },
};
