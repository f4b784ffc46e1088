import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
  await expect(run(["nft"], here)).rejects.toMatchObject({ cause: { code: "ENOENT" } });
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

test("a program is killed when its time is over, and one whose input stays open then", async () => {
  const began = Promise.withResolvers<number>();
  const end = new AbortController();
  const held = run(["cat"], { signal: end.signal, input: "in\n", onStart: began.resolve });
  const pid = await began.promise;
  expect(readFileSync(`/proc/${pid}/comm`, "utf8")).toBe("cat\n");
  end.abort(new Error("enough"));
  await expect(held).rejects.toThrow("enough");
  await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
});

test("a process that ends leaves none behind that starts programs, and may end while none runs", async () => {
  const file = join(import.meta.dirname, "../../src/isolation/edge/run.ts");
  const script = `const { run } = await import(${JSON.stringify(file)});
    console.log((await run(["sh", "-c", "echo $PPID"], { signal: new AbortController().signal })).trim());`;
  const runner = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  await expect.poll(() => existsSync(`/proc/${runner.trim()}`)).toBe(false);
});

test("a process that only waits for a program learns that the one that starts them was killed", () => {
  const file = join(import.meta.dirname, "../../src/isolation/edge/run.ts");
  const script = `const { run } = await import(${JSON.stringify(file)});
    await run(["sh", "-c", "kill -9 $PPID"], { signal: new AbortController().signal }).catch(({ message }) => console.log(message));`;
  const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(said).toContain("the process that starts programs ended with SIGKILL");
});

test("the next program is started also after the process that starts them has died", async () => {
  const parent = await run(["sh", "-c", "echo $PPID"], { signal });
  const lost = run(["sleep", "60"], { signal });
  lost.catch(() => undefined);
  process.kill(Number(parent), "SIGKILL");
  await expect(lost).rejects.toThrow(
    /^sleep could not be run: the process that starts programs ended with SIGKILL$/,
  );
  expect(await run(["echo", "again"], { signal })).toBe("again\n");
});
