import { Is, Key, MAPPING, type Reader, type Values } from "@nodeyard/driver";
import { split } from "shlex";

/** The name of an image is that of a folder on disk and of a node in the tree. */
export const IN_PATHS = Is.pattern(
  "a name without / and control characters, not . or ..",
  /^(?!\.{1,2}$)[^/\p{Cc}]+$/u,
  [["debian-12"], ["a/b", "..", "a\tb"]],
);
const FORMAT = Is.asIn("a format", ["qcow2", "squashfs"], /^[\w.-]+$/, ["qcow2,raw", ""]);
const VARIABLES = Is.pattern("the name of a variable", /^[^=\0]+$/, [["DIB_RELEASE"], ["A=B", ""]]);
/** A child of another image has its parent's value, others the default. */
const AS_ABSENT = "counts as an absent key";

/** diskimage-builder's program, looked for in PATH. */
const DIB = "disk-image-create";

/** Keys of an entry of `diskimages` that are its own. */
export const diskimageTable = {
  name: Key.text("Name of the image.", { needed: true }),
  abstract: Key.flag("Only a parent of others: never built.", { default: false }),
  parent: Key.text("The entry whose values this one starts from."),
};

/** Keys whose values an entry has from its parents where it does not give others. */
export const imageTable = {
  formats: Key.texts("Formats to build beside those that providers need.", { default: [], like: FORMAT }),
  "keep-formats": Key.texts("Formats kept on disk despite `delete-after-upload`.", {
    default: [],
    like: FORMAT,
  }),
  "delete-after-upload": Key.flag("Delete local files once uploaded everywhere.", { default: false }),
  elements: Key.texts("Elements, after those of the parents.", { default: [], like: Is.NOT_EMPTY }),
  "env-vars": Key.strings("Environment of the build, over that of the parents.", { keys: VARIABLES }).as(
    "env",
  ),
  release: Key.textOrInteger("Release of the distribution, for the build.", { default: "" }),
  "rebuild-age": Key.seconds("Age at which a build is replaced.", {
    default: 86_400,
    like: Is.ABOVE_0,
    instead: AS_ABSENT,
  }).as("rebuildAgeMs"),
  "rebuild-on-change": Key.flag(
    "Build again when elements in `elements-dir`, `env-vars`, `release` or the build's command change, on the host that built last.",
    { default: false },
  ),
  canary: Key.inner(
    Key.section({
      percent: Key.integer("Part of the launches that boot a new build, 1 to 50.", {
        default: 10,
        unit: "%",
        like: Is.whole(1, 50),
      })
        .as("share")
        .map((percent) => Math.min(50, Math.max(1, percent)) / 100),
      launches: Key.integer(
        "Launches of the new build after which it takes over, if nothing speaks against it.",
        {
          default: 20,
          like: Is.whole(1),
          instead: "counts as 1",
        },
      ).map((launches) => Math.max(1, Math.floor(launches))),
      "max-age": Key.seconds("A trial ends after this.", { default: 86_400, like: Is.ABOVE_0 }).as(
        "maxAgeMs",
      ),
    }),
    "A new build boots a part of the launches first, and takes over or is rolled back by what they show.",
    { default: null },
  ),
  "build-timeout": Key.seconds("A build is ended after this.", {
    default: 28_800,
    like: Is.ABOVE_0,
    instead: AS_ABSENT,
  }).as("buildTimeoutMs"),
  pause: Key.flag("No builds.", { default: false }).as("paused"),
  "dib-cmd": Key.text("Build command.", { default: DIB }).as("dibCommand").map(wordsOf),
  "build-command": Key.texts(
    "Program and arguments that leave `$DIB_IMAGE_FILENAME.<format>` for each of `$NODEYARD_IMAGE_FORMATS`, in place of diskimage-builder.",
    { default: [] },
  )
    .as("command")
    .map((words) => (words.length > 0 ? words : null)),
  username: Key.text("Login user of nodes.", { default: "zuul", like: Is.orEmpty(Is.CLOUD_NAME) }),
  "python-path": Key.text("Ansible's interpreter on nodes.", { default: "auto" }),
  "shell-type": Key.text("Ansible's shell type on nodes.", {
    like: Is.orEmpty(Is.SHELL_TYPE),
    instead: "Ansible lacks",
  }).accepted("is accepted; Nodepool's validator does not know it"),
  metadata: Key.field("Metadata of uploads; never inherited.", {}, MAPPING, Key.readStrings),
};

/** How one diskimage is built. Seconds are milliseconds, and `share` is the part of launches from 0 to 1. */
export type ImageSettings = Values<typeof imageTable> & { readonly name: string };
/** How a new build is tried before it takes over. */
export type CanarySettings = NonNullable<ImageSettings["canary"]>;
/** What labels need of a diskimage. */
export type DiskimageConfig = Pick<ImageSettings, "name" | "username" | "pythonPath" | "shellType">;

/** Split as a shell would, which runs nothing: a program and its first arguments. */
function wordsOf(command: string, at: Reader, key: string): readonly string[] {
  try {
    const words = split(command || DIB);
    if (words.length > 0) return words;
  } catch {
    // Reported below: the same sentence for both.
  }
  at.error(key, `is ${JSON.stringify(command)}, which has an open quote or no word; close it`);
  return [DIB];
}
