const nodes = "/nodepool/nodes";
const requests = "/nodepool/requests";
const requestsLock = "/nodepool/requests-lock";
const components = "/nodepool/components";

/** Places in the tree, inside the chroot (docs/contract/tree.md, "Paths of the contract"). */
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
  /** Existence is the value: no builds of the image. */
  imagePause: (name: string) => `/nodepool/images/${name}/pause`,
  /** Existence is the value: somebody asks for a build. */
  imageRequest: (name: string) => `/nodepool/images/${name}/request-build`,
  imageBuilds: (name: string) => `/nodepool/images/${name}/builds`,
  /** One build per image at a time, over all builders. */
  imageBuildsLock: (name: string) => `/nodepool/images/${name}/builds/lock`,
  imageBuildLock: (image: string, build: string) => `/nodepool/images/${image}/builds/${build}/lock`,
  imageProviders: (image: string, build: string) => `/nodepool/images/${image}/builds/${build}/providers`,
  imageUploads: (image: string, build: string, provider: string) =>
    `/nodepool/images/${image}/builds/${build}/providers/${provider}/images`,
  /** One upload per image, build and provider at a time. */
  imageUploadsLock: (image: string, build: string, provider: string) =>
    `/nodepool/images/${image}/builds/${build}/providers/${provider}/images/lock`,
  imageBuild: (image: string, build: string) => `/nodepool/images/${image}/builds/${build}`,
  /** What a node's `image_id` is, too (docs/contract/records.md, "What is written when"). */
  imageUpload: (image: string, build: string, provider: string, upload: string) =>
    `/nodepool/images/${image}/builds/${build}/providers/${provider}/images/${upload}`,
} as const;
