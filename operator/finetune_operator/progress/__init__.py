"""The endpoint that trainers report to: certificates, who sends, and what they say."""
