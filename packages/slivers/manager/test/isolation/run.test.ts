import { expect, test } from "vitest";
import { run } from "../../src/isolation/edge/run.ts";

const { signal } = new AbortController();
const here = { signal, path: "/nowhere" };

test("a program that is not there is named with the package that holds it", async () => {
  await expect(run(["nft", "list", "tables"], here)).rejects.toThrow(
    "nft is not installed here: apt-get install nftables",
  );
  await expect(run(["/nowhere/lxc-start", "-d"], { signal })).rejects.toThrow(
    "lxc-start is not installed here: apt-get install lxc",
  );
  await expect(run(["constructor"], here)).rejects.toThrow(/^constructor is not installed here$/);
});

test("a program that may not be run fails with the reason, one that fails with its output", async () => {
  await expect(run(["/etc/passwd"], { signal })).rejects.toThrow(/^\/etc\/passwd could not be run: .*EACCES/);
  await expect(run(["sh", "-c", "echo no >&2; exit 3"], { signal })).rejects.toThrow(/^sh -c .*: no$/);
  await expect(run(["sh", "-c", "exit 3"], { signal })).rejects.toThrow(/: it ended with 3$/);
});

test("one that works on an image has a limit of memory", async () => {
  const memory = 64 * 1024 * 1024;
  expect(await run(["sh", "-c", "ulimit -v"], { signal, memory, diesWithUs: true })).toBe(
    `${memory / 1024}\n`,
  );
  // dd takes its block from memory at once.
  const take = run(["dd", "if=/dev/zero", "of=/dev/null", "bs=128M", "count=1"], { signal, memory });
  await expect(take).rejects.toThrow(/memory exhausted/);
});
