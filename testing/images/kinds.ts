import { execFileSync } from "node:child_process";
import { bootKernel } from "./boot-kernel.ts";
import { BUILD_PATH } from "./require.ts";

/** An image for the end-to-end run: how it is built, and how it boots. */
export interface ImageKind {
  readonly elements: readonly string[];
  readonly dibCommand: string;
  readonly env: Readonly<Record<string, string>>;
  /** Its keys in the provider's section. */
  readonly boot: Readonly<Record<string, string>>;
  readonly ram: number;
  /** GiB; not below the image's. */
  readonly disk: number;
  /** For a boot without KVM, on a busy machine. */
  readonly bootSeconds: number;
  /** How often it is built: the third build retires the first. */
  readonly builds: number;
  /** Whether its machines resume from a saved state; then it is built with the element for that. */
  readonly saved?: boolean;
  /** How new builds are tried. */
  readonly trial?: { readonly percent: number; readonly launches: number };
}

/** The smallest: programs of this machine, no mirror, booted by a kernel from outside. */
export async function mini(cache: string): Promise<ImageKind> {
  const { kernel, initrd } = await bootKernel();
  return {
    elements: ["nodeyard-mini", "nodeyard-boot"],
    dibCommand: "disk-image-create -n",
    env: { PATH: BUILD_PATH, DIB_IMAGE_CACHE: cache, DIB_IMAGE_SIZE: "1" },
    boot: { kernel, initrd, "kernel-arguments": "console=ttyS0 quiet panic=-1" },
    ram: 256,
    disk: 2,
    bootSeconds: 900,
    builds: 3,
  };
}

/** An image that does not boot if the run asks for it; new builds are tried on half of the launches. */
export function breakable(kind: ImageKind): ImageKind {
  const elements = [...kind.elements, "nodeyard-broken"];
  // A machine that does not boot takes this long; one that boots, some tens of seconds on a busy machine.
  return { ...kind, elements, bootSeconds: 240, trial: { percent: 50, launches: 4 } };
}

/** Debian as diskimage-builder makes it, with its own boot loader and systemd; from the mirror that apt uses here. */
export function debian(cache: string): ImageKind {
  const release = execFileSync("sh", ["-c", ". /etc/os-release && echo $VERSION_CODENAME"], {
    encoding: "utf8",
  }).trim();
  return {
    elements: ["debian-minimal", "vm", "nodeyard-debian"],
    dibCommand: "disk-image-create",
    env: {
      PATH: BUILD_PATH,
      DIB_IMAGE_CACHE: cache,
      DIB_RELEASE: release,
      DIB_DISTRIBUTION_MIRROR: mirrorOf(release),
      DIB_APT_SOURCES_CONF: sources(release),
    },
    boot: {},
    ram: 512,
    disk: 4,
    bootSeconds: 3600,
    builds: 1,
  };
}

function sources(release: string): string {
  const updates = mirrorOf(`${release}-updates`);
  return [release, `${release}-updates`]
    .map(
      (suite, at) =>
        `${at === 0 ? "default" : "updates"}:deb ${at === 0 ? mirrorOf(release) : updates} ${suite} main`,
    )
    .join("\n");
}

function mirrorOf(suite: string): string {
  const lines = execFileSync(
    "apt-get",
    ["indextargets", "--format", "$(RELEASE) $(COMPONENT) $(CREATED_BY) $(REPO_URI)"],
    { encoding: "utf8" },
  ).split("\n");
  const found = lines
    .map((line) => line.split(" "))
    .find(([release, component, by]) => {
      return release === suite && component === "main" && by === "Packages";
    });
  if (found?.[3] === undefined) throw new Error(`apt knows no ${suite} main; run apt-get update`);
  return found[3].replace(/\/$/, "");
}
