import { createHash } from "node:crypto";
import { CommandError } from "../../../errors.ts";
import { howToInstall, run } from "../../edge/run.ts";
import { OWN_IDS } from "../../lxc/names.ts";

/** Reference of an image: `host[:port]/name`, then a tag or a digest. Without either, the tag is `latest`. */
export const REFERENCE =
  /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::\d{1,5})?(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)+(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})?$/;

/** An image of a registry. */
export interface RegistryImage {
  readonly registry: string;
  /** File of logins in the format of podman and Docker. Absent: no login is sent. */
  readonly authFile?: string | undefined;
}

/** Most bytes of memory of skopeo. */
const MEMORY = 1_073_741_824;
/** References to this machine, which may also be fetched over HTTP. */
const LOCAL = /^(?:localhost|127(?:\.\d+){3})[:/]/;

/**
 * Answers of a registry are hostile input. skopeo parses them as a user of its own without rights, and can write to one folder only. That
 * folder is mounted over /sys, as in the jail. The file of logins can be read by root only, so it is copied there.
 */
const SCRIPT = `set -e
command -v skopeo >/dev/null || { echo "${howToInstall("skopeo")}" >&2; exit 1; }
folder=$1 auth=$2 uid=$3
shift 3
mount --bind "$folder" /sys
if [ -n "$auth" ]; then install -m 400 -o "$uid" "$auth" /sys/auth.json; set -- "$@" --authfile /sys/auth.json; fi
chown "$uid" /sys
cd /sys
exec env TMPDIR=/sys HOME=/sys XDG_RUNTIME_DIR=/sys setpriv --reuid="$uid" --regid="$uid" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all skopeo --insecure-policy "$@"`;

/** The SHA-256 digest (hexadecimal) of the index or manifest that the reference names now. Throws CommandError. */
export async function lookUp(image: RegistryImage, folder: string, signal: AbortSignal): Promise<string> {
  const pinned = /@sha256:(.*)$/.exec(image.registry)?.[1];
  if (pinned !== undefined) return pinned;
  const flags = LOCAL.test(image.registry) ? ["--tls-verify=false"] : [];
  const raw = await skopeo(
    ["inspect", "--raw", ...flags, `docker://${image.registry}`],
    image,
    folder,
    signal,
  );
  return createHash("sha256").update(raw).digest("hex");
}

/** Fetches the image with that digest into an OCI layout, the folder `layout` in `folder`. Throws CommandError. */
export async function fetchLayout(
  image: RegistryImage,
  digest: string,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const name = image.registry.replace(/(?::[^:/]+|@[^@]+)$/, "");
  const flags = LOCAL.test(image.registry) ? ["--src-tls-verify=false"] : [];
  const from = `docker://${name}@sha256:${digest}`;
  await skopeo(["copy", "--quiet", ...flags, from, "oci:/sys/layout"], image, folder, signal);
}

async function skopeo(
  words: readonly string[],
  { registry, authFile = "" }: RegistryImage,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const apart = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child"] as const;
  const script = ["sh", "-c", SCRIPT, "sh", folder, authFile, String(OWN_IDS.images), ...words];
  const options = { signal, diesWithUs: true } as const;
  return run(["prlimit", `--data=${MEMORY}`, ...apart, ...script], options).catch((cause) => {
    if (!(cause instanceof CommandError)) throw cause;
    throw new CommandError(`${registry}: ${cause.message.replace(/^.*?: /, "")}`, { cause });
  });
}
