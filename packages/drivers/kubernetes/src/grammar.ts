import { type Grammar, Is, toNumber } from "@nodeyard/driver";

/** What an API server takes (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/). */

/** Names of namespaces and pods (RFC 1123, "DNS label"). */
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
/** Characters left of the 63 of a DNS label after a dash, ten digits and the mark (`markOf`). */
const LONGEST_START = 40;

/** The start of the names of namespaces or pods. */
export const NAME_START = Is.textLike(
  `at most ${LONGEST_START} lower-case letters, digits and dashes`,
  (name) => DNS_LABEL.test(name) && name.length <= LONGEST_START,
  [["ci-1"], ["My Ns", "a/b", "-a", "x".repeat(41)]],
);
/** Values of labels, but for the empty one. */
export const LABEL_VALUE = Is.pattern(
  "at most 63 letters, digits, dots, dashes and underscores",
  /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
  [["a.B_c-1"], ["a b", "a/b", "x".repeat(64)]],
);
export const EMPTY_OR_LABEL_VALUE = Is.orEmpty(LABEL_VALUE);
/** Names of labels, annotations and resources. */
export const QUALIFIED = Is.pattern(
  "a name of at most 63 letters, digits, dots, dashes and underscores, which may follow a domain and a slash",
  /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
  [
    ["owner", "example.org/owner", "nvidia.com/gpu"],
    ["a b", "a/b/c", "Example.org/x", ""],
  ],
);
/** Names of other objects (RFC 1123, "DNS subdomain"). */
export const SUBDOMAIN = Is.pattern(
  "lower-case letters, digits, dots and dashes",
  /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/,
  [["gpu-scheduler"], ["My scheduler", ""]],
);
/** A reference to a secret of the pod's namespace. */
export const SECRET: Grammar = {
  write: "a mapping with the name of a secret alone",
  holds: (value) => {
    const { name, ...more } = Object(value);
    return typeof name === "string" && SUBDOMAIN.holds(name) && Object.keys(more).length === 0;
  },
  right: [{ name: "registry" }],
  wrong: ["registry", {}, { name: "My secret" }, { name: "a", key: "b" }],
};
/** A reference of an image: registry, repository in lower case, tag and digest. */
export const IMAGE = Is.textLike(
  "an image, as in registry.example.org:5000/ci/debian:12",
  (text) =>
    /^([\w.-]+(:\d+)?\/)?[a-z0-9]+([._-]+[a-z0-9]+)*(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:\w[\w.-]{0,127})?(@sha256:[\da-f]{64})?$/.test(
      text,
    ),
  [
    ["debian", "registry.example.org:5000/ci/debian_x--y:12", `docker.io/fedora@sha256:${"0".repeat(64)}`],
    ["debian 12", "Debian:12", "debian:", ""],
  ],
);
export const ENV_NAME = Is.pattern("a name without = of visible characters", /^[!-<>-~]+$/, [
  ["A_b.c-1"],
  ["A=B", "a b", ""],
]);
const SECONDS = Is.whole(600, 2 ** 32);
/** The server refuses a shorter lifetime than ten minutes, and a longer one than 2^32 seconds. */
export const TOKEN_SECONDS: Grammar = {
  write: "0, or 600 to 4294967296",
  holds: (value) => toNumber(value) === 0 || SECONDS.holds(value),
  right: [0, 600, 86_400],
  wrong: [-1, 60, 2 ** 33],
};
