import { Is } from "@nodeyard/driver";

/** What Google Cloud takes, by the patterns of Compute Engine's discovery document and its pages on names. */

const RFC1035 = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
export const PROJECT = Is.pattern("the id of a project", /^([a-z0-9.-]+:)?[a-z][-a-z0-9]{0,61}[a-z0-9]$/, [
  ["ci-project-1", "example.com:ci"],
  ["CI", "ci_project", ""],
]);
export const REGION = Is.asIn("a region", "europe-west4", /^[a-z]+-[a-z]+\d+$/, [
  "europe-west4-b",
  "europe",
  "",
]);
export const ZONE = Is.asIn("a zone", "europe-west4-b", /^[a-z]+-[a-z]+\d+-[a-z]$/, ["europe-west4", ""]);
export const MACHINE_TYPE = Is.asIn("a machine type", ["e2-standard-4", "n2-custom-4-8192"], RFC1035, [
  "E2",
  "e2 standard",
  "",
]);
export const DISK_TYPE = Is.asIn("a type of disk", ["pd-ssd", "hyperdisk-balanced"], RFC1035, [
  "SSD",
  "zones/a/diskTypes/pd-ssd",
  "",
]);
export const DISK_SIZE = Is.whole(1, 65_536);
export const FAMILY = Is.pattern("the name of an image family", RFC1035, [["debian-12"], ["Debian", ""]]);
/** A name, or a path that begins with global, regions or projects, as the consoles show it. */
export const NETWORK = Is.pattern(
  "a name, or a path as in projects/host/global/networks/ci",
  /^([a-z]([-a-z0-9]{0,61}[a-z0-9])?|(https:\/\/|projects\/|global\/|regions\/)[\w./:-]+)$/,
  [
    ["default", "projects/host/regions/europe-west4/subnetworks/ci"],
    ["My Net", "/ci", ""],
  ],
);
export const NETWORK_TAG = Is.pattern("a network tag", RFC1035, [["ci"], ["CI", ""]]);
export const SERVICE_ACCOUNT = Is.pattern(
  "the email of a service account, or default",
  /^(default|[^@\s]+@[^@\s]+)$/,
  [
    ["ci@ci-project-1.iam.gserviceaccount.com", "default"],
    ["ci", ""],
  ],
);
export const BUCKET = Is.pattern("the name of a bucket", /^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/, [
  ["ci-images"],
  ["gs://ci-images", "ci", ""],
]);
export const ENDPOINT = Is.pattern(
  "an address, as in https://compute.googleapis.com",
  /^https?:\/\/[^/\s]+\/?$/,
  [["https://compute-ci.p.googleapis.com"], ["compute.googleapis.com", "https://x/compute/v1", ""]],
);
/** Limits of `maxRunDuration`: half a minute to 120 days. */
export const RUN_LIMIT = Is.whole(30, 10_368_000);
/** A value of metadata. */
export const USER_DATA = Is.bytes(262_144);
