import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished, test } from "vitest";
import { requireSshd } from "../../sshd/index.ts";
import { Reader } from "../reader.ts";

const TUTORIALS = join(import.meta.dirname, "../../../docs/tutorial");

async function readerOf(page: string): Promise<Reader> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-tutorial-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const reader = await Reader.of(readFileSync(join(TUTORIALS, page), "utf8"), folder);
  onTestFinished(() => reader.close());
  return reader;
}

/** Half a minute of steps in a row, on a machine that is busy with other tests. */
const LIMIT_MS = 600_000;

describe.each([
  ["first-nodes.md", undefined],
  ["lab.md", requireSshd],
] as const)("%s", (page, missing) => {
  // In one folder: what was tried in the wrong order must not be in the way afterwards.
  test.skipIf(missing?.())(
    "from bottom to top each step works or says in a line why not; from top to bottom all of it is true",
    async () => {
      const reader = await readerOf(page);
      await reader.fromBottomToTop();
      await reader.fromTopToBottom();
    },
    LIMIT_MS,
  );
});
