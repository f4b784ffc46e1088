import type { Column } from "@nodeyard/operations/listing";
import { makeKey, makeStateFolder, readText } from "@nodeyard/process";
import {
  createSigningKeys,
  readSigningKeys,
  rotateSigningKeysFile,
  type SigningKeys,
  type SliverPaths,
  sliverPaths,
} from "@nodeyard/sliver-protocol";
import type { Command } from "commander";
import { parseDuration } from "../arguments.ts";
import { printRows } from "../listing.ts";
import { type Session, stateOf } from "../session.ts";

/** Options of all commands about keys. */
interface Output {
  readonly json?: boolean;
}

const columns: readonly Column[] = [
  { heading: "Key", key: "key" },
  { heading: "Use", key: "use" },
  { heading: "Key Set", key: "keySet" },
  { heading: "Until", key: "until" },
  { heading: "Public Half", key: "public" },
];
const JSON_OPTION = ["--json", "an array of objects on stdout: key, use, keySet, until, public"] as const;

/** `sliverd keys`: files only; neither tree nor host is contacted. Hosts learn of a new key by their next document. */
export function addSliverdKeys(sliverd: Command, session: Session): void {
  const keys = sliverd
    .command("keys")
    .description("manage the launcher's signing keys in the state folder; sliver hosts obey what they sign");
  keys
    .command("init")
    .description("create the first keys; all launchers of an installation need the same ones")
    .option(...JSON_OPTION)
    .action(async (output: Output) => {
      const made = await makeKeys(session);
      show(session, made, sliverPaths(stateOf(session)), output);
    });
  keys
    .command("show")
    .description("show the public halves of the keys")
    .option(...JSON_OPTION)
    .action((output: Output) => {
      const places = sliverPaths(stateOf(session));
      show(session, readSigningKeys(places.signingKeys), places, output);
    });
  keys
    .command("rotate")
    .description("sign with a new key from now on; hosts get it with their next document")
    .option(
      "--overlap <time>",
      "how long hosts still trust the previous key; 0: until the next document",
      "30d",
    )
    .option(...JSON_OPTION)
    .action(({ overlap, ...output }: Output & { readonly overlap: string }) => {
      const places = sliverPaths(stateOf(session));
      // `parseDuration` knows no 0.
      const seconds = overlap === "0" ? 0 : parseDuration(overlap) / 1_000;
      const now = Math.floor(session.machine.clock.now() / 1_000);
      show(session, rotateSigningKeysFile(places.signingKeys, { now, overlap: seconds }), places, output);
    });
}

/**
 * Makes the launcher's keys in the state folder. Where there are some it rejects, or, with `keep`, they stay: new ones would lock
 * the launcher out of every host that trusts the old ones.
 */
export async function makeKeys(session: Session, keep = false): Promise<SigningKeys> {
  const state = stateOf(session);
  makeStateFolder(state);
  const places = sliverPaths(state);
  const there = keep ? readSigningKeysIfAny(places.signingKeys) : undefined;
  if (there !== undefined) return there;
  // First the file whose existence makes the command fail.
  const made = createSigningKeys(places.signingKeys);
  await makeKey(places.controlKey.replace(/\/[^/]*$/, ""), "control-key");
  return made;
}

/** Undefined only when the file does not exist: a file that cannot be read is no reason to make new keys. */
function readSigningKeysIfAny(path: string): SigningKeys | undefined {
  try {
    return readSigningKeys(path);
  } catch (error) {
    if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === "ENOENT") return undefined;
    throw error;
  }
}

/** The public halves alone: private ones are never printed. `until` null: the key has no end. */
function show({ io }: Session, { keySet, kid }: SigningKeys, places: SliverPaths, { json }: Output): void {
  const signing = keySet.keys.map((key) => ({
    key: key.kid,
    use: key.kid === kid ? "signs documents" : "is still trusted",
    keySet: keySet.version,
    until: key.notAfter === undefined ? null : new Date(key.notAfter * 1_000).toISOString(),
    public: key.x,
  }));
  const control = {
    key: "control",
    use: "logs in to hosts",
    keySet: null,
    until: null,
    public: controlKeyOf(places),
  };
  printRows(io, [...signing, control], columns, { json: json === true });
}

/** The public half of the key that logs in to hosts, as `type base64`, without its comment. */
export function controlKeyOf({ controlKey }: SliverPaths): string {
  return readText(`${controlKey}.pub`, "the control key").trim().split(" ").slice(0, 2).join(" ");
}
