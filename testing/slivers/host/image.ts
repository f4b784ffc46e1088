import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BUILD_PATH, debian, ELEMENTS } from "../../images/index.ts";
import { stream } from "../guest/stream.ts";

const ROOT = join(import.meta.dirname, "../../..");
/** GiB: Debian, Node, and a pool of slivers. */
const SIZE = "4";

export interface HostImage {
  /** What `nodeyard sliverd settings` printed. */
  readonly settings: string;
  /** Folder of the programs. */
  readonly bundle: string;
  /** For the image's machines. */
  readonly node: string;
}

/**
 * Builds diskimage-builder's debian-minimal with the element `nodeyard-sliverd` in `folder`, as the element's README describes. Resolves to
 * the image. It runs in namespaces of its own, so that a killed build leaves no mount.
 */
export async function hostImage(
  folder: string,
  { settings, bundle, node }: HostImage,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<string> {
  const image = join(folder, "host");
  const reported = join(folder, "sliverd-settings.json");
  await writeFile(reported, settings);
  const { env, elements } = debian(join(folder, "cache"));
  const variables = {
    ...env,
    PATH: BUILD_PATH,
    HOME: "/root",
    LC_ALL: "C",
    DIB_IMAGE_SIZE: SIZE,
    ELEMENTS_PATH: `${ELEMENTS}:${join(ROOT, "elements")}`,
    DIB_NODEYARD_SLIVERD_SETTINGS: reported,
    DIB_NODEYARD_SLIVERD_BUNDLE: bundle,
    DIB_NODEYARD_SLIVERD_NODE: node,
    NODEYARD_BUILD: "sliver-host",
  };
  const words = [
    ...["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "env", "-i"],
    ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    ...["disk-image-create", "-t", "qcow2", "--no-tmpfs", "-o", image, ...elements, "nodeyard-sliverd"],
  ];
  await stream("unshare", words, onLine, signal);
  return `${image}.qcow2`;
}
