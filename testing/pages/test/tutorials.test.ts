import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { requireSshd } from "../../sshd/index.ts";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import { Reader } from "../reader.ts";

const TUTORIALS = join(import.meta.dirname, "../../../docs/tutorial");

// As root sshd needs its chroot folder, which otherwise the service unit makes.
beforeAll(() => {
  if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
});

/** Each tutorial, and what it needs of the machine. */
const NEEDS = {
  "first-nodes.md": () => undefined,
  "lab.md": requireSshd,
  "behind-zuul.md": requireZooKeeper,
  "from-nodepool.md": () => requireZooKeeper() ?? requireSshd(),
};

test("no tutorial is left out", () => {
  const pages = readdirSync(TUTORIALS).filter((page) => page !== "README.md");
  expect(pages.sort()).toEqual(Object.keys(NEEDS).sort());
});

// They wait for most of their time.
describe.concurrent("from bottom to top each step works or says in a line why not; from top to bottom all is true:", () => {
  for (const [page, missing] of Object.entries(NEEDS))
    test.skipIf(missing() !== undefined)(page, async () => {
      // One folder: what was tried in the wrong order must not be in the way afterwards.
      const folder = mkdtempSync(join(tmpdir(), "nodeyard-tutorial-"));
      const reader = await Reader.of(readFileSync(join(TUTORIALS, page), "utf8"), folder);
      try {
        await reader.fromBottomToTop();
        await reader.fromTopToBottom();
      } finally {
        await reader.close();
        rmSync(folder, { recursive: true, force: true });
      }
    });
});
