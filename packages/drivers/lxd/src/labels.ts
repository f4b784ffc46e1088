import { type CreateOrder, DriverError, type LabelConfig, type Resources } from "@nodeyard/driver";
import { z } from "zod";
import { amountsOf } from "./amounts.ts";
import { type LxdClient, LxdError } from "./client.ts";
import type { LxdImage, LxdLabelOwn } from "./config.ts";
import { labelKeys, PROFILE } from "./instances.ts";

/** A fingerprint, or enough of its beginning. */
const FINGERPRINT = /^[0-9a-f]{12,64}$/;

/** What an instance is made from, as the API names it. `pem`: the text of a certificate's file. */
export function sourceOf({ label, imageExternalId }: CreateOrder, pem: (path: string) => string): object {
  if (typeof imageExternalId === "string") return { type: "image", fingerprint: imageExternalId };
  const { image } = label.own as LxdLabelOwn;
  if (image === null)
    throw new DriverError(
      "configuration",
      `label ${label.name} has no image here: no upload of ${label.image?.name ?? "any image"} is ready`,
    );
  if (image.copyOf !== null) return { type: "copy", source: image.copyOf, instance_only: true };
  const { image: name, remote, remoteProtocol: protocol, remoteCertificate } = image;
  const named = FINGERPRINT.test(name ?? "") ? { fingerprint: name } : { alias: name };
  if (remote === null) return { type: "image", ...named };
  const certificate = remoteCertificate === null ? {} : { certificate: pem(remoteCertificate) };
  return { type: "image", mode: "pull", server: remote, protocol, ...certificate, ...named };
}

/** Where the server has an image; null: a remote has it. */
function pathOf({ image, remote, copyOf }: LxdImage): string | null {
  if (copyOf !== null) return `/instances/${copyOf.replace("/", "/snapshots/")}`;
  if (remote !== null || image === null) return null;
  return FINGERPRINT.test(image) ? `/images/${image}` : `/images/aliases/${encodeURIComponent(image)}`;
}

/** What an instance of the label will use, with what its profiles say. Rejects when a profile or its image is not there. */
export async function needOf(
  client: LxdClient,
  { own, name }: LabelConfig<LxdLabelOwn>,
  signal: AbortSignal,
): Promise<Resources> {
  const path = own.image && pathOf(own.image);
  const [profiles] = await Promise.all([
    Promise.all(
      own.profiles.map((profile) => client.get(PROFILE, `/profiles/${encodeURIComponent(profile)}`, signal)),
    ),
    path === null ? undefined : client.get(z.unknown(), path, signal),
  ]).catch((error) => {
    if (!(error instanceof LxdError && error.status === 404)) throw error;
    throw new DriverError("configuration", `label ${name}: ${error.message}`, { cause: error });
  });
  const config = Object.assign({}, ...profiles.map((profile) => profile.config), labelKeys(own));
  const devices = Object.assign({}, ...profiles.map((profile) => profile.devices), own.devices);
  return amountsOf(own.type, config, devices);
}
