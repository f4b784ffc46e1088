/** What a project of a double has: regions with zones, machine types, images of others. */
export interface GceSite {
  readonly project: string;
  readonly zones: readonly string[];
  readonly machineTypes: Readonly<Record<string, { readonly guestCpus: number; readonly memoryMb: number }>>;
  /** Public images by project and family. */
  readonly families: Readonly<Record<string, readonly string[]>>;
  readonly networks: readonly string[];
}

export const SITE: GceSite = {
  project: "ci-project-1",
  zones: ["us-central1-a", "us-central1-b", "us-central1-c", "europe-west4-a"],
  machineTypes: {
    "f1-micro": { guestCpus: 1, memoryMb: 614 },
    "n1-standard-2": { guestCpus: 2, memoryMb: 7_680 },
    "e2-standard-4": { guestCpus: 4, memoryMb: 16_384 },
    "n2-standard-8": { guestCpus: 8, memoryMb: 32_768 },
  },
  families: { "debian-cloud": ["debian-12", "debian-13"] },
  networks: ["default", "ci"],
};

export function regionOf(zone: string): string {
  return zone.replace(/-[a-z]$/, "");
}

/** By the quota pages of Compute Engine: N1, E2 and shared cores have CPUS; other families their own. */
export function metricOf(type: string, isSpot: boolean, quotas: Readonly<Record<string, number>>): string {
  const family = type.split("-", 1)[0]!;
  if (isSpot && (quotas.PREEMPTIBLE_CPUS ?? 0) > 0) return "PREEMPTIBLE_CPUS";
  return ["f1", "g1", "n1", "e2", "custom"].includes(family) ? "CPUS" : `${family.toUpperCase()}_CPUS`;
}
