import type { ExpectedFields } from "./checks/index.ts";

/**
 * The fields that nodes of each label have by the configuration (`providers.ts`). It is written a second time here, so that a launcher that reads or
 * copies it wrongly is found.
 */
const KEYS = (keys: unknown) => Array.isArray(keys) && keys.length > 0;
const TEXT = (text: unknown) => typeof text === "string" && text !== "";
const PLACE = { interface_ip: TEXT, external_id: TEXT, az: TEXT, connection_type: "ssh", host_keys: KEYS };
const IMAGE = { username: "ci", python_path: "/usr/bin/python3", connection_port: 2022 };
const CLOUD: ExpectedFields = { ...PLACE, ...IMAGE, attributes: { executor: "east" } };

export const EXPECTED: ReadonlyMap<string, ExpectedFields> = new Map([
  ...["small", "large", "rare", "extra", "metal", "zoned", "offered"].map((label) => [label, CLOUD] as const),
  ["imaged", { ...CLOUD, username: "zuul", python_path: "auto", connection_port: 22 }],
  ["slice", { ...CLOUD, attributes: { executor: "east", sliced: true } }],
  ["board", { interface_ip: (host: unknown) => HOSTS.has(host), connection_port: 22, username: "zuul" }],
]);

const HOSTS: ReadonlySet<unknown> = new Set(["10.0.0.1", "10.0.0.2"]);
