import type { Capabilities, Driver, Provider } from "./contract.ts";
import type { Handover, Offers, SlotRules } from "./offers.ts";

/** Number of the contract that this version of the package describes. A change that breaks drivers increases it. */
export const CONTRACT: Driver["contract"] = 1;

/** The capabilities that a driver must declare; the other two are optional. */
const CAPABILITIES: Readonly<Record<Exclude<keyof Capabilities, "local" | "backing">, true>> = {
  launches: true,
  inventory: true,
  probes: true,
  tags: true,
};

type Method = Exclude<keyof Provider, "offers" | "place">;

/** Typed by the contract, so that a new method of the contract must be listed here. */
const PROVIDER: Readonly<Record<Method, true>> = {
  create: true,
  remove: true,
  find: true,
  list: true,
  removeResource: true,
  quota: true,
  need: true,
  inventory: true,
  probe: true,
  close: true,
};

/** Names of a provider's methods. */
export const METHODS = Object.keys(PROVIDER) as readonly Method[];

type Loose = Readonly<Record<string, unknown>>;

/**
 * Why `value` is not a driver of this contract, as the end of a sentence; undefined when it is one. Called with what a package
 * outside of this repository exports, so nothing about it is taken for granted.
 */
export function driverProblem(value: unknown): string | undefined {
  if (!isObject(value)) return "is not an object";
  const { name, contract, open, config } = value;
  if (typeof name !== "string" || !/^[a-z][a-z0-9-]*$/.test(name))
    return `has the name ${show(name)}; it must be lower-case letters, digits and dashes`;
  // Checked first: a driver of another contract may have other properties.
  if (contract !== CONTRACT)
    return `was written for driver contract ${show(contract)}, and this Nodeyard has ${CONTRACT}; install versions that fit`;
  if (typeof open !== "function") return "has no method open";
  if (!isObject(config) || typeof config.load !== "function") return "has no config.load";
  if (!isObject(config.schema) || typeof config.schema.safeParse !== "function")
    return "has no config.schema; make config with driverConfig() of @nodeyard/driver";
  const missing = SLOT_RULES.find((rule) => value.slots !== undefined && !hasMethod(value.slots, rule));
  if (missing !== undefined) return `has slots without a method ${missing}`;
  return capabilitiesProblem(value.capabilities);
}

const SLOT_RULES: readonly (keyof SlotRules)[] = ["of", "need"];

function capabilitiesProblem(value: unknown): string | undefined {
  if (!isObject(value)) return "declares no capabilities";
  const missing = Object.keys(CAPABILITIES).find((name) => typeof value[name] !== "boolean");
  if (missing !== undefined) return `must declare capabilities.${missing} as true or false`;
  const { launches, inventory, probes, local } = value;
  if (local !== undefined && typeof local !== "boolean")
    return "must declare capabilities.local as true or false, or leave it out";
  if (!launches && !inventory) return "declares neither launches nor inventory, so it has nothing to offer";
  if (probes && !inventory) return "declares probes without inventory, and nothing else is ever probed";
  return undefined;
}

/** Why the result of `open` is not a provider, as the end of a sentence. Only whether methods are there; the conformance kit checks the rest. */
export function providerProblem(value: unknown): string | undefined {
  if (!isObject(value)) return "is not an object";
  const missing = METHODS.filter((name) => typeof value[name] !== "function");
  if (missing.length > 0) return `has no method ${missing.join(", ")}`;
  if (value.place !== undefined && typeof value.place !== "function")
    return "has a place that is not a method";
  return value.offers === undefined ? undefined : offersProblem(value.offers);
}

/** Required methods of each offer. Typed by the contract, so that a new offer must be listed here. */
const OFFERS: Readonly<Record<keyof Offers, readonly string[]>> = {
  zones: ["list"],
  types: ["of"],
  prices: ["of"],
  console: ["read"],
  images: ["upload", "remove"],
  handover: ["ready"],
  suspension: ["suspend", "wake"],
  slots: ["compare"],
  pace: ["now"],
  slivers: ["machines"],
};

/** Optional methods of an offer. */
const OPTIONAL: Readonly<Partial<Record<keyof Offers, readonly string[]>>> = {
  handover: ["access", "reconcile"] satisfies (keyof Handover)[],
};

function offersProblem(offers: unknown): string | undefined {
  if (!isObject(offers)) return "has offers that are not an object";
  for (const [name, methods] of Object.entries(OFFERS)) {
    const offer = offers[name];
    if (offer === undefined) continue;
    const missing = methods.find((method) => !hasMethod(offer, method));
    if (missing !== undefined) return `offers ${name} without a method ${missing}`;
    if (!isObject(offer)) return `offers ${name} that are not an object`;
    const wrong = OPTIONAL[name as keyof Offers]?.find(
      (method) => offer[method] !== undefined && typeof offer[method] !== "function",
    );
    if (wrong !== undefined) return `offers ${name} whose ${wrong} is not a method`;
  }
  return undefined;
}

function hasMethod(value: unknown, name: string): boolean {
  return isObject(value) && typeof value[name] === "function";
}

function isObject(value: unknown): value is Loose {
  return typeof value === "object" && value !== null;
}

function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : value === undefined ? "nothing" : String(value);
}
