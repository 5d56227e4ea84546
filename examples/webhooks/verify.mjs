import { createHmac, timingSafeEqual } from "node:crypto";

// verify throws if a request does not come from the owner of the secret. body is a Buffer or a string: the bytes that came.
export function verify(secret, headers, body, now = Date.now()) {
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= 300)) throw new Error("the timestamp is missing, too old or in the future");
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const want = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  const isRight = (headers["webhook-signature"] ?? "").split(" ").some((signature) => {
    const [version, text] = signature.split(",");
    const got = Buffer.from(text ?? "", "base64");
    return version === "v1" && got.length === want.length && timingSafeEqual(got, want);
  });
  if (!isRight) throw new Error("no signature is right");
}
