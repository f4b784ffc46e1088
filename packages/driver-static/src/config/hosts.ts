import type { Reader } from "@nodeyard/driver";
import type { StaticHost } from "../own.ts";

/** The hosts of one pool. `seen` holds the identities of all hosts of the provider. */
export function readHosts(pool: Reader, seen: Map<string, string>): readonly StaticHost[] {
  const hosts: StaticHost[] = [];
  for (const from of pool.mappings("nodes")) {
    const host = readHost(from);
    if (host === undefined) continue;
    const { username, port } = host.connection;
    const identity = JSON.stringify([host.name, username, port]);
    const first = seen.get(identity);
    if (first === undefined) {
      seen.set(identity, from.path.join("."));
      hosts.push(host);
    } else
      from.error(
        "name",
        `repeats ${username}@${host.name} port ${port} of ${first}; use max-parallel-jobs for several slots`,
      );
  }
  return hosts;
}

function readHost(from: Reader): StaticHost | undefined {
  const name = from.needed("name");
  const labels = readLabels(from);
  if (name === undefined || labels === undefined) return undefined;
  return {
    name,
    labels,
    connection: {
      username: from.text("username", "zuul"),
      pythonPath: from.text("python-path", "auto"),
      shellType: from.text("shell-type", null),
      type: from.text("connection-type", "ssh"),
      port: from.number("connection-port", from.number("ssh-port", 22)),
    },
    slots: readSlots(from),
    hostKeyChecking: from.flag("host-key-checking", true),
    hostKeys: typeof from.raw["host-key"] === "string" ? [from.raw["host-key"]] : keysOf(from),
    timeoutMs: from.milliseconds("timeout", 5),
  };
}

function keysOf(from: Reader): readonly string[] {
  return from.has("host-key") ? from.texts("host-key") : [];
}

function readSlots(from: Reader): number {
  const slots = Math.floor(from.number("max-parallel-jobs", 1));
  if (slots >= 1) return slots;
  from.warn("max-parallel-jobs", "is below 1: the host is never offered; remove the host, or give it a slot");
  return 0;
}

/** Labels split the same way for the pool and for its nodes. */
function readLabels(from: Reader): readonly string[] | undefined {
  const value = from.raw.labels;
  if (value === undefined || value === null) {
    from.error("labels", "is missing; write a list of labels");
    return undefined;
  }
  const labels =
    typeof value === "string" ? value.split(/\s+/).filter((label) => label !== "") : from.texts("labels");
  if (typeof value === "string" && labels.length > 1) {
    from.warn("labels", `is split into ${labels.join(" and ")}; write a list instead`);
  }
  if (labels.length === 0) from.warn("labels", "is empty: nobody can ask for this host");
  return [...new Set(labels)];
}
