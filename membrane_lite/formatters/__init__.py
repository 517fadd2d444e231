"""Participants into a provider's roles, and a provider's deltas back into chunks and blocks.

base                what the turn asks of a formatter, and what every request has in common
assembly            deltas -> chunks and blocks, where blocks are the provider's own

native              roles, with tool_pairs (repair), system_changes, floating_marker
openai_responses    a flat list of items
completions         one prompt
anthropic_xml       native, or one transcript with its tools as text. A transcript, in reading order:
  transcript          messages -> text; the tools in it: xml_tools, with schema_types and ecma_json
  xml_conversation    a turn: the text grows by answers and results, and goes on behind accidental stops
  xml_assembly        one answer, cut at its stop sequence, then read twice:
  xml_stream            as it streams: its tags, chunks and block events
  xml_reading           as a whole: its blocks. xml_markup finds the tags, xml_blocks which belong together;
                        xml_calls (xml_signatures, xml_values) and xml_results read what stands between them
  xml_tags            the words: tag names, spellings, white space
  call_ids            ids for calls that have none

cache_markers cache_receipts image_media request_size stop_sequences tool_names    for more than one of these
"""
