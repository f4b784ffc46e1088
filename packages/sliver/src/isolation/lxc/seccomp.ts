const NEW_USER_NAMESPACE = "0x10000000";
/** `ioctl` looks at the low half of its argument only, so only that is compared. */
const LOW_HALF = "0xffffffff";

/** ioctls that make a subvolume, which would have no limit of its own: create, snapshot, and their second versions. */
const BTRFS_SUBVOLUMES = ["0x5000940e", "0x50009401", "0x50009417", "0x50009418"];

/**
 * The list of refused calls, in LXC's format. A new user namespace would give back every capability that was dropped;
 * `clone3` hides its flags from filters, and libraries fall back to `clone` when it is not there (38: ENOSYS).
 */
export const SECCOMP_POLICY = `${[
  "2",
  "denylist",
  "reject_force_umount",
  "[all]",
  ...[
    "kexec_load",
    "kexec_file_load",
    "open_by_handle_at",
    "init_module",
    "finit_module",
    "delete_module",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "add_key",
    "request_key",
    "fsopen",
    "open_tree",
    "move_mount",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "quotactl",
    "quotactl_fd",
  ].map((call) => `${call} errno 1`),
  `unshare errno 1 [0,${NEW_USER_NAMESPACE},SCMP_CMP_MASKED_EQ,${NEW_USER_NAMESPACE}]`,
  `clone errno 1 [0,${NEW_USER_NAMESPACE},SCMP_CMP_MASKED_EQ,${NEW_USER_NAMESPACE}]`,
  "clone3 errno 38",
  ...BTRFS_SUBVOLUMES.map((code) => `ioctl errno 1 [1,${code},SCMP_CMP_MASKED_EQ,${LOW_HALF}]`),
].join("\n")}\n`;
