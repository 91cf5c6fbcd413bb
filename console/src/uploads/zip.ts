/** A ZIP file of files, stored without compression. The bytes stay where they are: only their checksums are read. */

const LARGEST = 0xffff_ffff;
const UTF8 = 0x0800;

/** Packs files. Its bytes depend on the files alone, so that an upload of it goes on after a reload. */
export async function zipped(files: readonly File[], name: string): Promise<File> {
  const total = files.reduce((sum, file) => sum + file.size, 0);
  if (total > LARGEST - 1_000_000) throw new RangeError(`${name} would be larger than 4 GB. Pack it with ZIP64.`);
  const parts: (Uint8Array<ArrayBuffer> | File)[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const file of files) {
    const fileName = new TextEncoder().encode(file.name);
    const facts = factsOf(await checksum(file), file.size, fileName.length);
    const head = joined(numbers([4, 0x04034b50], [2, 20]), facts, numbers([2, 0]), fileName);
    directory.push(
      joined(
        numbers([4, 0x02014b50], [2, 20], [2, 20]),
        facts,
        numbers([2, 0], [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]),
        fileName,
      ),
    );
    parts.push(head, file);
    offset += head.length + file.size;
  }
  const size = directory.reduce((sum, entry) => sum + entry.length, 0);
  const count = files.length;
  const end = numbers([4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, offset], [2, 0]);
  const lastModified = Math.max(0, ...files.map((file) => file.lastModified));
  return new File([...parts, ...directory, end], name, { lastModified, type: "application/zip" });
}

/** Flags, method, time, date, checksum, sizes and length of the name, as both headers have them. 1 January 1980. */
function factsOf(crc: number, size: number, nameLength: number): Uint8Array<ArrayBuffer> {
  return numbers([2, UTF8], [2, 0], [2, 0], [2, 0x21], [4, crc], [4, size], [4, size], [2, nameLength]);
}

function numbers(...fields: [width: 2 | 4, value: number][]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [width]) => sum + width, 0)));
  let at = 0;
  for (const [width, value] of fields) {
    if (width === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += width;
  }
  return new Uint8Array(view.buffer);
}

function joined(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

async function checksum(file: Blob): Promise<number> {
  let crc = 0xffff_ffff;
  const reader = file.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return (crc ^ 0xffff_ffff) >>> 0;
    for (const byte of value) crc = (TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  }
}
