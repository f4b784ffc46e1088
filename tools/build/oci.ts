import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { copyProgram } from "./debian.ts";
import { writeParts } from "./release.ts";

/** Node's libraries, a shell for the commands of builds, and `unshare` for their namespaces; installed without apt and without perl. */
const SMALL = {
  words: ["--mode=chrootless", "--variant=custom"],
  packages: ["base-files", "base-passwd", "coreutils", "dash", "libstdc++6", "util-linux"],
};
/** What diskimage-builder and its usual elements call, besides what Debian says that it depends on. */
const DISKIMAGE_BUILDER = {
  words: ["--variant=minbase"],
  packages: [
    ...[
      "ca-certificates",
      "curl",
      "debootstrap",
      "dosfstools",
      "fdisk",
      "gdisk",
      "git",
      "gpg",
      "kpartx",
      // sudo complains where a container's own name cannot be resolved, and diskimage-builder reads that as output.
      "libnss-myhostname",
      "procps",
    ],
    ...[
      "python3-diskimage-builder",
      "python3-yaml",
      "qemu-utils",
      "rsync",
      "sudo",
      "uuid-runtime",
      "xz-utils",
    ],
  ],
};
/** Nobody on the host, and a number, since Kubernetes refuses a name where it must see that the user is not root. */
const USER = 10001;
const STATE = "/var/lib/nodeyard";
const CONFIG = "/etc/nodeyard/nodepool.yaml";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";

export const IMAGES = {
  nodeyard: { base: SMALL, command: "up", about: "tree, launcher and builder in one process" },
  "nodeyard-launcher": { base: SMALL, command: "launcher", about: "a launcher on ZooKeeper" },
  "nodeyard-builder": { base: DISKIMAGE_BUILDER, command: "builder", about: "a builder on ZooKeeper" },
} as const;

interface Blob {
  readonly digest: string;
  readonly size: number;
}
interface Layer extends Blob {
  /** Digest of the layer before it was compressed. */
  readonly diffId: string;
}

/**
 * Writes images as OCI archives into `folder`, each with an SBOM beside it, and returns the files. An image is a Debian bootstrapped by
 * mmdebstrap, below one layer with the built packages and this Node. Everything in it has the time of the commit, or SOURCE_DATE_EPOCH:
 * two builds of a commit are equal byte by byte while Debian's archive stays the same. Needs root. Throws when mmdebstrap is missing or fails.
 */
export function ociImages(
  root: string,
  folder: string,
  version: string,
  names = Object.keys(IMAGES) as (keyof typeof IMAGES)[],
): string[] {
  const work = mkdtempSync(join(root, ".tmp", "oci-"));
  const git = ["log", "-1", "--format=%H %ct"];
  const [revision, committed] = execFileSync("git", git, { cwd: root, encoding: "utf8" }).trim().split(" ");
  const epoch = Number(process.env.SOURCE_DATE_EPOCH ?? committed);
  const created = new Date(epoch * 1000).toISOString().replace(".000", "");
  const architecture = { x64: "amd64", arm64: "arm64" }[process.arch as string] ?? process.arch;
  mkdirSync(folder, { recursive: true });
  try {
    const sbom = join(work, "parts/sbom.cdx.json");
    writeParts(root, dirname(sbom));
    const program = layer(work, programLayer(root, work, epoch));
    const bases = new Map<typeof SMALL, Layer>();
    return names.flatMap((name) => {
      const { base, command, about } = IMAGES[name];
      const status = join(work, `${base.packages.length}.status`);
      if (!bases.has(base)) bases.set(base, layer(work, bootstrap(base, status, epoch)));
      const layers = [bases.get(base)!, program];
      const labels = {
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.description": `Nodeyard hands out test machines: ${about}`,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.title": name,
        "org.opencontainers.image.version": version,
      };
      const config = putJson(work, {
        created,
        architecture,
        os: "linux",
        config: {
          User: `${USER}:${USER}`,
          Env: [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            `NODEYARD_STATE=${STATE}`,
            `DIB_IMAGE_CACHE=${STATE}/cache`,
          ],
          Entrypoint: ["/usr/bin/nodeyard"],
          Cmd: ["-c", CONFIG, command],
          Volumes: { [STATE]: {} },
          WorkingDir: STATE,
          Labels: labels,
          StopSignal: "SIGTERM",
        },
        rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
        history: ["Debian 12 (bookworm)", `Nodeyard ${version}, Node ${process.versions.node}`].map(
          (comment) => ({
            created,
            created_by: "npm run build -- --oci",
            comment,
          }),
        ),
      });
      const manifest = putJson(work, {
        schemaVersion: 2,
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: { mediaType: "application/vnd.oci.image.config.v1+json", ...config },
        layers: layers.map(({ digest, size }) => ({ mediaType: LAYER, digest, size })),
        annotations: labels,
      });
      const file = join(folder, `${name}_${version}_${architecture}`);
      writeFileSync(`${file}.cdx.json`, withDebian(sbom, status));
      writeArchive(work, `${file}.oci.tar`, epoch, [config, manifest, ...layers], {
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        ...manifest,
        platform: { architecture, os: "linux" },
        // Podman takes the first one for the name of what it loads, Docker the second.
        annotations: {
          "org.opencontainers.image.ref.name": `${name}:${version}`,
          "io.containerd.image.name": `docker.io/library/${name}:${version}`,
        },
      });
      return [`${file}.oci.tar`, `${file}.cdx.json`];
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** A root file system as a tar; writes dpkg's list of what is in it to `status`. */
function bootstrap({ words, packages }: typeof SMALL, status: string, epoch: number): string {
  const tar = `${status}.tar`;
  const hooks = [
    `cp "$1/var/lib/dpkg/status" '${status}'`,
    'cd "$1/usr/share" && rm -rf locale man info bash-completion && find doc -type f ! -name copyright -delete',
    `echo 'nodeyard:x:${USER}:${USER}:Nodeyard:${STATE}:/usr/sbin/nologin' >>"$1/etc/passwd"`,
    `echo 'nodeyard:x:${USER}:' >>"$1/etc/group"`,
    // A volume of podman's or Docker's that is mounted there for the first time takes over owner and content.
    `install -d -m 700 -o ${USER} -g ${USER} "$1${STATE}" "$1${STATE}/images"`,
  ];
  const all = [...words, `--include=${packages}`, ...hooks.map((hook) => `--customize-hook=${hook}`)];
  execFileSync("mmdebstrap", ["--quiet", ...all, "bookworm", tar], {
    env: { ...process.env, SOURCE_DATE_EPOCH: `${epoch}` },
    stdio: ["ignore", "inherit", "inherit"],
  });
  return tar;
}

function programLayer(root: string, work: string, epoch: number): string {
  const staged = join(work, "program");
  const at = (path: string) => {
    mkdirSync(dirname(join(staged, path)), { recursive: true });
    return join(staged, path);
  };
  copyProgram(root, at("usr/lib/nodeyard"));
  copyFileSync(join(root, "packaging/debian/nodeyard.sh"), at("usr/bin/nodeyard"));
  copyFileSync(join(root, "packaging/debian/nodepool.yaml"), at(CONFIG));
  copyFileSync(join(root, "examples/fake.yaml"), at("usr/share/doc/nodeyard/examples/fake.yaml"));
  cpSync(join(work, "parts"), at("usr/share/doc/nodeyard"), { recursive: true });
  return tarOf(staged, ["."], join(work, "program.tar"), epoch);
}

/** The same bytes for the same content, independent of the machine and the time. */
export function tarOf(folder: string, members: readonly string[], file: string, epoch: number): string {
  const same = [
    "--sort=name",
    `--mtime=@${epoch}`,
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--mode=u=rwX,go=rX",
  ];
  execFileSync("tar", [
    "--create",
    `--file=${file}`,
    `--directory=${folder}`,
    "--format=gnu",
    ...same,
    ...members,
  ]);
  return file;
}

function layer(work: string, tar: string): Layer {
  const bytes = readFileSync(tar);
  rmSync(tar);
  return { ...put(work, gzipSync(bytes)), diffId: digestOf(bytes) };
}

function putJson(work: string, value: unknown): Blob {
  return put(work, Buffer.from(JSON.stringify(value)));
}

function put(work: string, bytes: Buffer): Blob {
  const digest = digestOf(bytes);
  mkdirSync(join(work, "blobs"), { recursive: true });
  writeFileSync(join(work, "blobs", digest.slice("sha256:".length)), bytes);
  return { digest, size: bytes.length };
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function writeArchive(
  work: string,
  file: string,
  epoch: number,
  blobs: readonly Blob[],
  manifest: unknown,
): void {
  const layout = mkdtempSync(join(work, "layout-"));
  mkdirSync(join(layout, "blobs/sha256"), { recursive: true });
  for (const { digest } of blobs) {
    const name = digest.slice("sha256:".length);
    copyFileSync(join(work, "blobs", name), join(layout, "blobs/sha256", name));
  }
  writeFileSync(join(layout, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  const mediaType = "application/vnd.oci.image.index.v1+json";
  writeFileSync(
    join(layout, "index.json"),
    JSON.stringify({ schemaVersion: 2, mediaType, manifests: [manifest] }),
  );
  tarOf(layout, ["oci-layout", "index.json", "blobs"], file, epoch);
  rmSync(layout, { recursive: true });
}

/** The packages' SBOM in `file`, and what dpkg's `status` lists. */
function withDebian(file: string, status: string): string {
  const sbom = JSON.parse(readFileSync(file, "utf8")) as { components: unknown[] };
  const fields = (text: string) =>
    Object.fromEntries([...text.matchAll(/^(\w+): (.*)$/gm)].map(([, key, value]) => [key, value]));
  const paragraphs = readFileSync(status, "utf8").trim().split("\n\n").map(fields);
  const debian = paragraphs.map(({ Package: name, Version: version, Architecture }) => ({
    type: "library",
    name,
    version,
    purl: `pkg:deb/debian/${name}@${encodeURIComponent(version!)}?arch=${Architecture}&distro=debian-12`,
  }));
  sbom.components.push({ type: "application", name: "node", version: process.versions.node }, ...debian);
  return `${JSON.stringify(sbom, null, 2)}\n`;
}
