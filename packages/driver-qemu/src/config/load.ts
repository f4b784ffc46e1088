import {
  type LoadContext,
  Reader,
  readCommonProvider,
  readLaunchLimits,
  readMachinePools,
} from "@nodeyard/driver";
import { parseSubnet } from "../machine/bridge.ts";
import type { NumberRange, QemuProviderConfig, QemuProviderOwn, Subnet } from "../own.ts";
import { readImages } from "./images.ts";
import { readKeys } from "./keys.ts";
import { readLabel } from "./label.ts";

/** Compiles a provider mapping. Every default is applied here. */
export function load(
  raw: Readonly<Record<string, unknown>>,
  context: LoadContext,
): QemuProviderConfig | undefined {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "qemu");
  const own = readOwn(from);
  if (own === undefined) return undefined;
  const images = readImages(from, context);
  const keys = readKeys(from);
  return {
    ...common,
    pools: readMachinePools(from, common, context, {
      limits: { cores: "max-cores", ram: "max-ram" },
      label: (at) => {
        const label = readLabel(at, images, keys, context);
        if (own.bridge !== null && label?.own.savedState)
          at.error(
            "saved-state",
            "cannot be had with bridge: guests that go on keep the hardware address that was saved",
          );
        return label;
      },
    }),
    ...readLaunchLimits(from, { launch: 600, boot: 300 }),
    own,
  };
}

function readOwn(from: Reader): QemuProviderOwn | undefined {
  const folder = from.needed("folder");
  if (folder === undefined) return undefined;
  if (!folder.startsWith("/"))
    from.error("folder", `is ${folder}, which is a relative path; write an absolute one`);
  const accelerator = oneOf(from, "accelerator", ["auto", "kvm", "tcg"] as const);
  const network = oneOf(from, "network", ["restricted", "outbound"] as const);
  if (network === "outbound" && !from.has("user"))
    from.error("network", "is outbound, which tells the machines' packets by their user; add user");
  const optional = (key: string) => (from.has(key) ? from.number(key, 0) : null);
  return {
    folder,
    host: from.text("host", null),
    user: from.text("user", null),
    users: readUsers(from),
    bridge: readBridge(from),
    address: from.text("address", "127.0.0.1"),
    accelerator,
    probeTimeoutMs: from.milliseconds("probe-timeout", 60),
    network,
    emulator: from.text("emulator", "qemu-system-x86_64"),
    limits: {
      instances: from.number("max-vms", Number.POSITIVE_INFINITY),
      cores: optional("max-cores"),
      ram: optional("max-ram"),
    },
  };
}

/** "first-last". */
function readUsers(from: Reader): NumberRange | null {
  const text = from.text("users", null);
  if (text === null) return null;
  const [, first, last] = (/^(\d{1,9})-(\d{1,9})$/.exec(text) ?? []).map(Number);
  if (first === undefined || last === undefined || first < 1000 || last < first) {
    from.error("users", `is ${text}; write two numbers from 1000 on, as in 200000-200999`);
    return null;
  }
  if (!from.has("user")) from.error("users", "needs user, whose group reads the images; add user");
  return { first, last };
}

function readBridge(from: Reader): Subnet | null {
  const text = from.text("bridge", null);
  if (text === null) return null;
  const subnet = parseSubnet(text);
  if (subnet === undefined)
    from.error("bridge", `is ${text}; write a network, as in 10.93.0.0/24, from /18 to /29`);
  if (!from.has("user"))
    from.error("bridge", "needs user, whose programs may open the machines' ends; add user");
  return subnet ?? null;
}

/** The first is the default. */
function oneOf<T extends string>(from: Reader, key: string, words: readonly [T, ...T[]]): T {
  const value = from.text(key, words[0]);
  const word = words.find((known) => known === value);
  if (word === undefined) from.error(key, `is ${value}; write one of ${words.join(", ")}`);
  return word ?? words[0];
}
