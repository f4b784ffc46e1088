import { type LabelConfig, messageOf, type Reader } from "@nodeyard/driver";
import { IMAGE, MAX_AMOUNT, type Resource, sshKey } from "@nodeyard/sliver-protocol";
import { LENT } from "../lending/index.ts";
import type { SliverLabelOwn } from "../own.ts";
import { AMOUNT_KEYS } from "./amounts.ts";

const SSH_PORT = 22;

export function readLabel(
  from: Reader,
  providerKeys: readonly string[],
): LabelConfig<SliverLabelOwn> | undefined {
  const name = from.needed("name");
  if (name === undefined) return undefined;
  const image = from.text("image", null);
  if (image !== null && !IMAGE.test(image))
    from.error("image", `is ${image}; write a name of lower-case letters and digits, or sha256:<digest>`);
  const rspec = readAmounts(from);
  return {
    name,
    hostKeyChecking: from.flag("host-key-checking", true),
    connection: {
      // The machine says which, when it has given the sliver a place.
      username: null,
      pythonPath: from.text("python-path", "auto"),
      shellType: from.text("shell-type", null),
      type: "ssh",
      port: SSH_PORT,
    },
    image: null,
    own: {
      rspec,
      image,
      initscript: from.text("initscript", ""),
      authorizedKeys: from.has("authorized-keys") ? readKeys(from) : providerKeys,
      lends: readLend(from, rspec),
    },
  };
}

/** As `type base64`; any other line is an error. */
export function readKeys(from: Reader): readonly string[] {
  return from.texts("authorized-keys").flatMap((line, index) => {
    try {
      return [sshKey(line)];
    } catch (error) {
      from.error("authorized-keys", `entry ${index}: ${messageOf(error)}`);
      return [];
    }
  });
}

export function readAmounts(from: Reader): SliverLabelOwn["rspec"] {
  const rspec: Partial<Record<Resource, number>> = {};
  for (const { key, resource, scale, missing } of AMOUNT_KEYS) {
    if (!from.has(key)) {
      if (missing !== undefined) rspec[resource] = missing * scale;
      continue;
    }
    const amount = from.number(key, 0);
    if (Number.isSafeInteger(amount) && amount >= 0 && amount * scale <= MAX_AMOUNT)
      rspec[resource] = amount * scale;
    else from.error(key, `is ${amount}; write a whole number from 0 to ${Math.floor(MAX_AMOUNT / scale)}`);
  }
  const { memoryGuarantee = 0, memoryCap = 0 } = rspec;
  // A cap of CPU or of traffic goes up with its guarantee; what is above this one would be killed.
  if (memoryCap > 0 && memoryGuarantee > memoryCap)
    from.error(
      "memory-guarantee",
      `is ${memoryGuarantee / 1024} with memory ${memoryCap / 1024}: a guarantee cannot exceed the cap; lower it, or raise memory`,
    );
  return rspec;
}

/** Key `lend`: whether idle slivers lend their caps. */
export function readLend(from: Reader, rspec: SliverLabelOwn["rspec"]): boolean {
  const lend = from.text("lend", "none");
  if (lend !== "none" && lend !== "idle") from.error("lend", `is ${lend}; write none or idle`);
  if (lend !== "idle") return false;
  if (LENT.every((name) => (rspec[name] ?? 0) === 0))
    from.warn(
      "lend",
      "is without effect: caps are lent, and there are none; add cpu-cap, net-cap, io-read or io-write",
    );
  return true;
}
