import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { skip } from "../skipped.ts";

const INSTALL = join(dirname(fileURLToPath(import.meta.url)), "install.sh");

let answer: { readonly python: string } | { readonly missing: string } | undefined;

/** The Python that has moto; made on first use, which takes a minute. Throws with what is missing. */
export function motoPython(): string {
  const found = look();
  if ("missing" in found) throw new Error(found.missing);
  return found.python;
}

/** For `describe.skipIf(requireAws())`: why there is no double of AWS, or undefined. */
export function requireAws(): string | undefined {
  const found = look();
  if ("python" in found) return undefined;
  return skip(found.missing, "python3", "/usr/share/doc/python3-venv");
}

function look(): NonNullable<typeof answer> {
  if (answer === undefined) {
    const { status, stdout, stderr, error } = spawnSync(INSTALL, { encoding: "utf8" });
    const why = `tests of the aws driver need moto: ${error?.message ?? stderr.trim().split("\n").at(-1)}`;
    answer = status === 0 ? { python: stdout.trim() } : { missing: why };
  }
  return answer;
}
