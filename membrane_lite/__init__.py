"""One request and response format for every major LLM provider."""
