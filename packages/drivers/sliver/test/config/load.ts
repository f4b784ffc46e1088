import { sliverConfig } from "../../src/index.ts";

/** Loads a provider: what it is, and what is said of it. */
export function load(raw: Readonly<Record<string, unknown>>) {
  const findings: string[] = [];
  const config = sliverConfig.load(raw, {
    labels: new Set(["small"]),
    diskimages: new Map(),
    report: ({ path, message }) => void findings.push(`${path.join(".")}: ${message}`),
  });
  return { config, findings, schema: sliverConfig.schema.safeParse(raw).success };
}

/** A provider with one label. */
export const whole = (label: object = {}, more: object = {}) => ({
  name: "lab",
  "signing-keys": "/keys.json",
  machines: [{ name: "one", socket: "/run/api.sock" }],
  pools: [{ name: "main", labels: [{ name: "small", ...label }] }],
  ...more,
});
