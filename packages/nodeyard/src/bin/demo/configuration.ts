import { readFileSync, writeFileSync } from "node:fs";
import { parseDocument, type YAMLMap, type YAMLSeq } from "yaml";
import type { LocalSshd } from "../../process/index.ts";

const EXAMPLE = new URL("../../../../../examples/demo.yaml", import.meta.url);

/** Writes the example with what is true of this machine; without hosts, without the provider of static ones. */
export function writeConfiguration(
  file: string,
  facts: { readonly hosts: readonly LocalSshd[]; readonly user: string; readonly cloudFile: string },
): void {
  const document = parseDocument(readFileSync(EXAMPLE, "utf8"));
  const [cloud, hosts] = (document.get("providers") as YAMLSeq<YAMLMap>).items;
  cloud!.setIn(["fake", "journal"], facts.cloudFile);
  if (facts.hosts.length === 0) {
    document.deleteIn(["providers", 1]);
    document.deleteIn(["labels", 2]);
  } else {
    const example = (hosts!.getIn(["pools", 0, "nodes", 0]) as YAMLMap).toJSON() as Record<string, unknown>;
    const nodes = facts.hosts.map(({ host, port, hostKey }) => ({
      ...example,
      name: host,
      username: facts.user,
      "connection-port": port,
      "host-key": hostKey,
    }));
    hosts!.setIn(["pools", 0, "nodes"], document.createNode(nodes));
  }
  writeFileSync(file, document.toString(), { mode: 0o600 });
}
