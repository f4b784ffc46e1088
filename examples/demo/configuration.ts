import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseDocument, type YAMLMap, type YAMLSeq } from "yaml";
import type { LocalSlivers } from "./local-slivers.ts";
import type { LocalSshd } from "./sshd.ts";

const EXAMPLE = new URL("../demo.yaml", import.meta.url);

/** Where the providers and labels of the example are. */
const [HOSTS, SLIVERS] = [1, 2];

export interface Facts {
  readonly hosts: readonly LocalSshd[];
  readonly slivers: LocalSlivers | undefined;
  /** Line of the public key that may log in to slivers. */
  readonly authorizedKey: string | undefined;
  readonly user: string;
  readonly cloudFile: string;
}

/**
 * Writes the example with the facts of this machine, and without the providers that it cannot serve. A file that differs from what the last
 * start wrote is kept: somebody edited it. Returns whether it was written.
 */
export function writeConfiguration(file: string, facts: Facts): boolean {
  const copy = `${file}.written`;
  if (existsSync(file) && textOf(file) !== textOf(copy)) return false;
  // The copy first: a start that is killed in between leaves a file that the next one takes for edited, and keeps.
  for (const path of [copy, file]) writeFileSync(path, configuration(facts), { mode: 0o600 });
  return true;
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

function configuration(facts: Facts): string {
  const document = parseDocument(readFileSync(EXAMPLE, "utf8"));
  const [cloud, hosts, slivers] = (document.get("providers") as YAMLSeq<YAMLMap>).items;
  cloud!.setIn(["fake", "journal"], facts.cloudFile);
  const leaveOut = (provider: number) => {
    document.deleteIn(["providers", provider]);
    document.deleteIn(["labels", provider + 1]);
  };
  if (facts.slivers === undefined) leaveOut(SLIVERS!);
  else {
    const { node, socket, signingKeys } = facts.slivers;
    slivers!.set("signing-keys", signingKeys);
    slivers!.set("authorized-keys", document.createNode([facts.authorizedKey]));
    slivers!.set("machines", document.createNode([{ name: node, socket }]));
  }
  if (facts.hosts.length === 0) leaveOut(HOSTS!);
  else {
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
  return document.toString();
}
