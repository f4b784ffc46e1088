import { compareText } from "@nodeyard/runtime";
import type { Flavor, Image, Network } from "../api/index.ts";
import type { OpenstackLabelOwn } from "../config.ts";

/** Each function returns the chosen object, or a text with the reason why there is none. */

/**
 * With `min-ram`: the smallest flavor with that much RAM, ordered by RAM and name, whose name contains `flavor-name`. Without it: the
 * flavor with exactly that name or id (docs/contract/drivers.md, "OpenStack: what is chosen").
 */
export function chooseFlavor(
  flavors: readonly Flavor[],
  { minRam, flavorName }: Pick<OpenstackLabelOwn, "minRam" | "flavorName">,
): Flavor | string {
  const sorted = flavors.toSorted((a, b) => a.ram - b.ram || compareText(a.name, b.name));
  const there = sorted.map(({ name }) => name).join(", ") || "none";
  if (minRam > 0) {
    const fits = ({ ram, name }: Flavor) => ram >= minRam && name.includes(flavorName ?? "");
    const called = flavorName === null ? "" : ` and ${flavorName} in its name`;
    return sorted.find(fits) ?? `no flavor has ${minRam} MiB${called}; the cloud has ${there}`;
  }
  if (flavorName === null) return "has no size; add min-ram or flavor-name";
  const named = sorted.find(({ name }) => name === flavorName) ?? sorted.find(({ id }) => id === flavorName);
  return named ?? `there is no flavor ${flavorName}; the cloud has ${there}`;
}

/** By id, otherwise by a name that one network only has. */
export function chooseNetwork(networks: readonly Network[], wanted: string): Network | string {
  const byId = networks.find(({ id }) => id === wanted);
  if (byId !== undefined) return byId;
  const byName = networks.filter(({ name }) => name === wanted);
  if (byName.length > 1) return `${byName.length} networks have that name; write the id of one`;
  const names = networks.map(({ name }) => name).join(", ");
  return byName[0] ?? `the project sees no such network; it sees ${names || "none"}`;
}

/** The only active image. Two with one name are an error, because the order of a listing says nothing about which is meant. */
export function chooseImage(images: readonly Image[], wanted: string): Image | string {
  const active = images.filter(({ status }) => status === "active");
  if (active.length > 1) return `${active.length} images have that name; use image-id`;
  return active[0] ?? `there is no active image ${wanted}`;
}
