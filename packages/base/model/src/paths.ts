const nodes = "/nodepool/nodes";
const requests = "/nodepool/requests";
const requestsLock = "/nodepool/requests-lock";
const components = "/nodepool/components";

/** Paths below the chroot (docs/contract/tree.md, "Paths of the contract"). */
export const paths = {
  root: "/nodepool",
  nodes,
  requests,
  requestsLock,
  components,
  images: "/nodepool/images",
  statsElection: "/nodepool/elections/stats",
  node: (id: string) => `${nodes}/${id}`,
  nodeLock: (id: string) => `${nodes}/${id}/lock`,
  request: (id: string) => `${requests}/${id}`,
  requestLock: (id: string) => `${requestsLock}/${id}`,
  component: (kind: string) => `${components}/${kind}`,
  image: (name: string) => `/nodepool/images/${name}`,
  /** While this znode exists, the image is not built. */
  imagePause: (name: string) => `/nodepool/images/${name}/pause`,
  /** While this znode exists, a client asks for a build. */
  imageRequest: (name: string) => `/nodepool/images/${name}/request-build`,
  imageBuilds: (name: string) => `/nodepool/images/${name}/builds`,
  /** Lock that limits all builders together to one build per image at a time. */
  imageBuildsLock: (name: string) => `/nodepool/images/${name}/builds/lock`,
  imageBuildLock: (image: string, build: string) => `/nodepool/images/${image}/builds/${build}/lock`,
  imageProviders: (image: string, build: string) => `/nodepool/images/${image}/builds/${build}/providers`,
  imageUploads: (image: string, build: string, provider: string) =>
    `/nodepool/images/${image}/builds/${build}/providers/${provider}/images`,
  /** Lock that limits uploads to one per image, build and provider at a time. */
  imageUploadsLock: (image: string, build: string, provider: string) =>
    `/nodepool/images/${image}/builds/${build}/providers/${provider}/images/lock`,
  imageBuild: (image: string, build: string) => `/nodepool/images/${image}/builds/${build}`,
  /** Path of an upload, which is also the value of a node's `image_id` (docs/contract/records.md, "What is written when"). */
  imageUpload: (image: string, build: string, provider: string, upload: string) =>
    `/nodepool/images/${image}/builds/${build}/providers/${provider}/images/${upload}`,
} as const;
