/** The file in the state folder by which the process can be looked at. */
export const HTTP_SOCKET = "http.sock";
