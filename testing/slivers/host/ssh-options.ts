/** Without a terminal, to nobody who is not known. */
export const SSH_OPTIONS = [
  "BatchMode=yes",
  "StrictHostKeyChecking=yes",
  "ConnectTimeout=30",
  "ServerAliveInterval=15",
  "LogLevel=ERROR",
].flatMap((option) => ["-o", option]);
