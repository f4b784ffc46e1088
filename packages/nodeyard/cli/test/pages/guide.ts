import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { parse, stringify } from "yaml";
import { Reader } from "../../../../../testing/pages/reader.ts";
import type { ZooKeeperServer } from "../../../../../testing/zookeeper/index.ts";
import { fakeConfig } from "../nodeyard.ts";

export const PAGES = join(import.meta.dirname, "../../../../../docs/how-to");

export function text(name: string): string {
  return readFileSync(join(PAGES, name), "utf8");
}

/** A page of an operator, with its names of hosts, files and ports as this machine has them. */
export async function follow(
  name: string,
  names: Readonly<Record<string, string>>,
  folder: string,
  ...hooks: Parameters<Reader["fromTopToBottom"]>
): Promise<void> {
  let page = text(name);
  for (const [theirs, ours] of Object.entries(names)) {
    expect(page, `${name} has the name that is replaced`).toContain(theirs);
    page = page.replaceAll(theirs, ours);
  }
  const reader = await Reader.of(page, folder);
  try {
    await reader.fromTopToBottom(...hooks);
  } finally {
    await reader.close();
  }
}

/** The lines of a page that are indented below a heading, as a file. */
export function indentedIn(name: string, heading: string): string {
  const [, section = ""] = text(name).split(`\n## ${heading}\n`);
  const [part] = section.split("\n## ");
  return part!
    .split("\n")
    .filter((line) => line.startsWith("    "))
    .map((line) => line.slice(4))
    .join("\n");
}

export async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-how-to-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A file for launchers on a ZooKeeper, which listen at `port` where nobody says otherwise. */
export function onZooKeeper(
  { host, port }: ZooKeeperServer,
  web: number,
  labels = ["small", "large"],
): string {
  const servers = { "zookeeper-servers": [{ host, port }] };
  return stringify({
    ...servers,
    webapp: { listen_address: "127.0.0.1", port: web },
    ...parse(fakeConfig({ labels })),
  });
}
