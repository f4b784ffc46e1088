import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { expect, onTestFinished, test } from "vitest";
import { probeSlivers } from "../probe-slivers.ts";

const PROGRAMS = ["lxc-start", "mkfs.btrfs", "btrfs", "nft", "ip", "tc", "sshd", "ssh", "setpriv"];

/** What is said on a machine that has these programs and no others. */
async function whyNot(there: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-probe-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of there) writeFileSync(join(folder, name), "", { mode: 0o755 });
  const facts = await probeSlivers({ ...systemMachine(), isRoot: true, env: { PATH: folder } });
  return "why" in facts ? facts.why : "";
}

test("programs that slivers need and the machine lacks are a sentence, with the packages to install", async () => {
  const without = (...names: string[]) => whyNot(PROGRAMS.filter((name) => !names.includes(name)));
  expect(await without("lxc-start", "btrfs", "mkfs.btrfs")).toBe(
    "lxc-start, mkfs.btrfs, and btrfs are not installed (Debian: lxc btrfs-progs)",
  );
  expect(await without("lxc-start", "btrfs")).toBe(
    "lxc-start and btrfs are not installed (Debian: lxc btrfs-progs)",
  );
  expect(await without("nft")).toBe("nft is not installed (Debian: nftables)");
});
