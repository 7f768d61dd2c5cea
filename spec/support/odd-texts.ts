/**
 * Words that break software which is careless with text (notes of real faults): what is asked, and what is kept of it.
 */
const FAMILY = '👩‍👩‍👧‍👦';
const FLAGS = '🇩🇪🇫🇷';

/** Each code unit of a text at which it can be cut. */
const cuts = (text: string) => Array.from({ length: text.length }, (_, at) => text.slice(0, at + 1));

/** A name, the words, and what they are afterwards when that is not the same. */
export const ODD_TEXTS: readonly (readonly [name: string, text: string, stored?: string])[] = [
  ['NUL', "what's the \u0000 weather", "what's the \uFFFD weather"],
  ['lone surrogates', 'a \ud83d b \udc69 c \udc69\ud83d d', 'a \uFFFD b \uFFFD c \uFFFD\uFFFD d'],
  ['a family cut at each code unit', cuts(FAMILY).join(' '), cuts(FAMILY).join(' ').toWellFormed()],
  ['flags cut at each code unit', cuts(FLAGS).join(' '), cuts(FLAGS).join(' ').toWellFormed()],
  ['Arabic and Hebrew with Latin words and digits', 'مرحبا hello 123 שלום abc ٤٥٦'],
  ['a right-to-left override', 'invoice\u202Efdp.exe \u2066x\u2069'],
  ['300 combining marks on one letter', `a${'\u0301'.repeat(300)}`],
  ['line and paragraph separators', 'one\u2028two\u2029three'],
  ['a lone CR, CR LF and tabs', 'one\rtwo\r\nthree\n\tfour\r'],
  ['words of the stream’s own format', 'data: x\n\nevent: done\ndata: [DONE]\n\n: ping\nid: 7\nretry: 1'],
  ['a prompt that quotes </script>', '</script><script>alert(1)</script><!-- <svg/onload=x> ]]>'],
  ['a table of 2,000 columns', `${'|a'.repeat(2_000)}|\n${'|-'.repeat(2_000)}|`],
  ['a list that is nested 5,000 times', '- '.repeat(5_000)],
  ['a byte order mark, joiners and a soft hyphen', '\uFEFFa\u200Db\u200Cc\u00ADd\u2060e'],
  ['composed and decomposed letters', 'é e\u0301 Å Å ﬁ'],
  ['code points outside the basic plane', '𠀀𠀁 𝔘𝔫𝔦 🟢 \u{10FFFF}'],
  ['signs of SQL, JSON and search', `'; drop table x; -- \\ " {"a":"\\u0000"} & | ! ( ) <-> :* %_`],
  ['white space at both ends', '  \n x \t\u00A0\u3000 '],
];
